"""Write itinerary.md from the results of the other tasks: the hotels, every day, and what it all costs."""

import json
import os
from datetime import date, timedelta
from pathlib import Path


def show(iso):
    """Return a date as one reads it: Fri 9 Oct."""
    day = date.fromisoformat(iso)
    return f"{day:%a} {day.day} {day:%b}"


def check_visas(hotels, visas):
    """Stop if a stay is longer than its visa allows. The days of arrival and departure both count."""
    allowed = {visa["city"]: visa["days"] for visa in visas}
    for hotel in hotels:
        city, days = hotel["city"], hotel["nights"] + 1
        if days > allowed[city]:
            raise SystemExit(f"{days} days in {city}, but the visa ends after {allowed[city]}")


def plan_days(legs, hotels):
    """Return one line for each day: a flight and the hotel it leads to, or the next sight near the hotel."""
    flights = {leg["date"]: leg for leg in legs}
    by_city = {hotel["city"]: hotel for hotel in hotels}
    sights = {hotel["city"]: iter(hotel["nearby"]) for hotel in hotels}
    day, last = date.fromisoformat(legs[0]["date"]), date.fromisoformat(legs[-1]["date"])
    city, lines = legs[0]["from"], []
    while day <= last:
        leg = flights.get(day.isoformat())
        if leg is None:
            text = f"{city}: {next(sights[city], 'a day without a plan')}."
        else:
            city = leg["to"]
            end = f"check in at {by_city[city]['hotel']}" if city in by_city else "home again"
            text = f"{leg['from']} to {city} on {leg['flight']}, {leg['departs']} to {leg['arrives']}; {end}."
        lines.append(f"{len(lines) + 1}. **{show(day.isoformat())}** {text}")
        day += timedelta(days=1)
    return lines


def cost_lines(costs, budget, currency):
    """Return the table of costs, with the sum and what it leaves of the budget."""
    total = sum(costs.values())
    rest = ("Left of the budget", budget - total) if total <= budget else ("Over the budget", total - budget)
    rows = [("", currency), ("-" * 18, "-----:"), *costs.items(), ("Total", total), rest]
    return [f"| {label:<18} | {amount:>6} |" for label, amount in rows]


trip = json.loads(Path(__file__).with_name("trip.json").read_text(encoding="utf-8"))
inputs = json.loads(Path(os.environ["TASKGRAPH_INPUTS"]).read_text(encoding="utf-8"))
flight, visa = inputs["flight"], inputs["visa"]
hotels = [inputs["hotel_jp"], inputs["hotel_kr"]]

check_visas(hotels, visa["visas"])
days = plan_days(flight["legs"], hotels)
print(f"planned {len(days)} days")

costs = {"Flights": flight["price"], "Visas": visa["price"]}
for hotel in hotels:
    costs[f"Hotel in {hotel['city']}"] = round(hotel["price"] * trip["rates"][hotel["currency"]])
total = sum(costs.values())
print(f"costs {total} of {trip['budget']} {trip['currency']}")

first, last = flight["legs"][0], flight["legs"][-1]
places = " → ".join([first["from"], *(hotel["city"] for hotel in hotels)])
lines = [
    f"# {places}",
    "",
    f"{len(days)} days for {flight['travellers']}, {show(first['date'])} to {show(last['date'])} {last['date'][:4]}.",
    "",
    "## Hotels",
    "",
    *(
        f"- {hotel['city']}: **{hotel['hotel']}**, {hotel['nights']} nights from {show(hotel['arrive'])},"
        f" {hotel['price']} {hotel['currency']} through {hotel['supplier']}"
        for hotel in hotels
    ),
    "",
    "## Day by day",
    "",
    *days,
    "",
    "## Costs",
    "",
    *cost_lines(costs, trip["budget"], trip["currency"]),
]
Path("itinerary.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
print("wrote itinerary.md")

result = {
    "file": "itinerary.md",
    "days": len(days),
    "hotels": [hotel["hotel"] for hotel in hotels],
    "cost": total,
    "budget": trip["budget"],
    "currency": trip["currency"],
}
Path(os.environ["TASKGRAPH_OUTPUT"]).write_text(json.dumps(result), encoding="utf-8")
