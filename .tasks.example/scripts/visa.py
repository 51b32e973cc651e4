"""Apply for the visas of the trip in trip.json: one for each country, with its fee and longest stay."""

import json
import os
import time
from pathlib import Path

# For each city: country, fee of one traveller in CNY, longest stay in days.
RULES = {"Tokyo": ("Japan", 350, 15), "Seoul": ("South Korea", 260, 30)}

trip = json.loads(Path(__file__).with_name("trip.json").read_text(encoding="utf-8"))
visas = []
for city in trip["nights"]:
    if city not in RULES:
        raise SystemExit(f"no visa rules are known for {city}")
    country, fee, days = RULES[city]
    print(f"{country}: applied for {trip['travellers']} visas ...", flush=True)
    time.sleep(0.4)
    print(f"{country}: granted for {days} days", flush=True)
    visas.append({"city": city, "country": country, "days": days, "price": fee * trip["travellers"]})

result = {"visas": visas, "price": sum(visa["price"] for visa in visas), "currency": "CNY"}
Path(os.environ["TASKGRAPH_OUTPUT"]).write_text(json.dumps(result), encoding="utf-8")
