"""Running commands so that they outlive whoever asked for them."""
