"""The `.tasks` folder on disk: files, lock, journal and history."""
