"""Book a hotel in the city named on the command line, for the nights that the flights leave us there.

Each attempt asks the next supplier of the list. The first one for Tokyo never answers: what a real
service does on a bad day.
"""

import json
import os
import sys
import time
from datetime import date, timedelta
from pathlib import Path

WEEKEND_FACTOR = 1.15  # nights that begin on a Friday or Saturday

SUPPLIERS = {
    "Tokyo": [
        {"name": "Sakura Rooms", "answers": False},
        {
            "name": "Edo Stays",
            "answers": True,
            "hotel": "Kanda Garden Hotel",
            "night": 17800,
            "currency": "JPY",
            "nearby": [
                "Asakusa and a boat down the Sumida",
                "the gardens of Ueno and its museums",
                "Kamakura, by train, with the Great Buddha",
                "Shibuya, Harajuku and the Meiji shrine",
                "the fish market of Toyosu and Ginza",
            ],
        },
    ],
    "Seoul": [
        {
            "name": "Hangang Booking",
            "answers": True,
            "hotel": "Bukchon Hanok House",
            "night": 148000,
            "currency": "KRW",
            "nearby": [
                "Gyeongbokgung palace and Bukchon village",
                "the city wall over Naksan, then Dongdaemun by night",
                "Namsan tower and the market of Namdaemun",
                "Suwon and its fortress",
            ],
        },
    ],
}

city = sys.argv[1]
attempt = int(os.environ.get("TASKGRAPH_ATTEMPT", "1"))
inputs = json.loads(Path(os.environ["TASKGRAPH_INPUTS"]).read_text(encoding="utf-8"))
flight = inputs["flight"]
stay = next(stay for stay in flight["stays"] if stay["city"] == city)

suppliers = SUPPLIERS[city]
supplier = suppliers[min(attempt, len(suppliers)) - 1]
print(f"asking {supplier['name']} for {stay['nights']} nights from {stay['arrive']} ...", flush=True)
if not supplier["answers"]:
    time.sleep(60)
    raise SystemExit(f"{supplier['name']} did not answer")
time.sleep(0.6)

arrive = date.fromisoformat(stay["arrive"])
rooms = (flight["travellers"] + 1) // 2
price = 0
for number in range(stay["nights"]):
    weekend = (arrive + timedelta(days=number)).weekday() in (4, 5)
    price += round(supplier["night"] * rooms * (WEEKEND_FACTOR if weekend else 1))
print(f"booked: {supplier['hotel']}, {rooms} room(s), {price} {supplier['currency']}", flush=True)

result = {
    **stay,
    "hotel": supplier["hotel"],
    "supplier": supplier["name"],
    "rooms": rooms,
    "price": price,
    "currency": supplier["currency"],
    "nearby": supplier["nearby"],
}
Path(os.environ["TASKGRAPH_OUTPUT"]).write_text(json.dumps(result), encoding="utf-8")
