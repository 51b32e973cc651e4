"""Choose the flights for the trip in trip.json, and say on which dates we stay in which city.

Every airline, price and time in this example is made up.
"""

import json
import os
import time
from datetime import date, timedelta
from pathlib import Path

LATEST_LANDING = "20:00"
WEEKEND_FACTOR = 1.2  # fares on a Saturday or Sunday

# For each leg: flight, take-off, landing, fare of one traveller in CNY.
OFFERS = {
    ("Shanghai", "Tokyo"): [
        ("EA 501", "08:10", "12:00", 1640),
        ("EA 507", "13:25", "17:20", 1480),
        ("NT 92", "18:40", "22:35", 990),
    ],
    ("Tokyo", "Seoul"): [
        ("HB 210", "09:30", "12:05", 1120),
        ("HB 214", "15:45", "18:20", 1260),
    ],
    ("Seoul", "Shanghai"): [
        ("EA 618", "11:00", "12:15", 1310),
        ("KS 33", "16:20", "17:40", 1190),
    ],
}


def choose(origin, destination, day, travellers):
    """Return the cheapest flight that does not land too late."""
    offers = OFFERS.get((origin, destination))
    if offers is None:
        raise SystemExit(f"nobody flies from {origin} to {destination}")
    in_time = [offer for offer in offers if offer[2] <= LATEST_LANDING]
    flight, departs, arrives, fare = min(in_time, key=lambda offer: offer[3])
    if day.weekday() >= 5:
        fare = round(fare * WEEKEND_FACTOR)
    print(f"{day}  {origin} to {destination}: {len(offers)} offers, {flight} for {fare} CNY each", flush=True)
    time.sleep(0.2)
    return {
        "from": origin,
        "to": destination,
        "date": day.isoformat(),
        "flight": flight,
        "departs": departs,
        "arrives": arrives,
        "price": fare * travellers,
    }


trip = json.loads(Path(__file__).with_name("trip.json").read_text(encoding="utf-8"))
day, place = date.fromisoformat(trip["start"]), trip["home"]
legs, stays = [], []
for city, nights in trip["nights"].items():
    legs.append(choose(place, city, day, trip["travellers"]))
    leave = day + timedelta(days=nights)
    stays.append({"city": city, "arrive": day.isoformat(), "leave": leave.isoformat(), "nights": nights})
    day, place = leave, city
legs.append(choose(place, trip["home"], day, trip["travellers"]))

price = sum(leg["price"] for leg in legs)
print(f"{price} CNY for all flights of {trip['travellers']} travellers")
result = {
    "travellers": trip["travellers"],
    "legs": legs,
    "stays": stays,
    "price": price,
    "currency": "CNY",
}
Path(os.environ["TASKGRAPH_OUTPUT"]).write_text(json.dumps(result), encoding="utf-8")
