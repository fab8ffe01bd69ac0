"""A weather agent without a model, a network or a key: rules, four tools and a little data.

It takes the place of your agent. `answer_v1` is deployed; `answer_v2` is a change under review.
Both return the interchange format: the answer and the tool calls.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

STATIONS: dict[str, dict[str, Any]] = {
    "Lisbon": {"id": "LIS-01", "temperature_c": 23.5, "humidity_percent": 61, "sky": "clear"},
    "Oslo": {"id": "OSL-04", "temperature_c": -4, "humidity_percent": 78, "sky": "light snow"},
    "Nairobi": {
        "id": "NBO-02",
        "temperature_c": 19.5,
        "humidity_percent": 70,
        "sky": "scattered clouds",
    },
    "Córdoba": {"id": "ODB-03", "temperature_c": 17, "humidity_percent": 44, "sky": "clear"},
}
FORECASTS = {"Lisbon": "clear, up to 25 °C", "Oslo": "snow, -7 °C at night"}
ALERTS = {"Oslo": {"kind": "ice", "until": "18:00"}}

TOOLS = {
    "get_weather": lambda city: {"city": city, **STATIONS[city]},
    "get_forecast": lambda city: {"city": city, "tomorrow": FORECASTS[city]},
    "get_alerts": lambda city: ALERTS.get(city, {}),
    "send_message": lambda text: {"sent": text},
}


@dataclass
class Talk:
    """One conversation: the question and the tool calls made to answer it."""

    question: str
    as_json: bool = False
    calls: list[dict[str, Any]] = field(default_factory=list)

    @property
    def cities(self) -> list[str]:
        found = [(self.question.find(city), city) for city in STATIONS if city in self.question]
        return [city for _, city in sorted(found)]

    def asks(self, *words: str) -> bool:
        return any(word in self.question.lower() for word in words)

    def use(self, tool: str, city: str) -> dict[str, Any]:
        result = TOOLS[tool](city)
        call = {"name": tool, "params": {"city": city}, "result": result, "success": True}
        self.calls.append({**call, "durationMs": 2})
        return result

    def reply(self, text: str) -> dict[str, Any]:
        usage = {"inputTokens": len(self.question) // 4, "outputTokens": len(text) // 4}
        return {"response": text, "toolCalls": self.calls, "usage": usage}


def answer_v1(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """The deployed agent. It does not know Fahrenheit."""
    talk = _talk(messages)
    return talk.reply(_without_city(talk) if not talk.cities else _about(talk))


def answer_v2(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """The change: it knows Fahrenheit. By mistake, it also answers warnings with the weather."""
    talk = _talk(messages)
    if talk.cities and talk.asks("fahrenheit"):
        celsius = talk.use("get_weather", talk.cities[0])["temperature_c"]
        return talk.reply(f"It is {celsius * 9 / 5 + 32:.1f} °F in {talk.cities[0]}.")
    if talk.cities and talk.asks("warning"):
        return talk.reply(_now(talk))
    return answer_v1(messages)


def _talk(messages: list[dict[str, Any]]) -> Talk:
    said = [part for m in messages if m["role"] == "user" for part in _texts(m["content"])]
    system = [part for m in messages if m["role"] == "system" for part in _texts(m["content"])]
    return Talk("\n".join(said), as_json=any("JSON" in text for text in system))


def _texts(content: Any) -> list[str]:
    parts = content if isinstance(content, list) else [content]
    return [part if isinstance(part, str) else str(part.get("value", "")) for part in parts]


def _without_city(talk: Talk) -> str:
    if talk.asks("thank"):
        return "You are welcome."
    if talk.asks("unit"):
        return "Celsius"
    if talk.asks("sail"):
        return "No. The log has gusts of 36 knots at 15:00, which is too much for a dinghy."
    return "I can only help with the weather. Which city is it about?"


def _about(talk: Talk) -> str:
    """The first rule whose word is in the question; otherwise the current weather."""
    rules = {
        "more humid": _more_humid,
        "humid": _humidity,
        "pack": _packing,
        "tomorrow": _tomorrow,
        "cycle": _cycling,
        "warning": _warning,
        "station": _station,
        "round": _rounded,
        "one word": _sky,
        "two words": _sky,
    }
    rule = next((rule for word, rule in rules.items() if talk.asks(word)), _now)
    return rule(talk)


def _now(talk: Talk) -> str:
    city = talk.cities[0]
    seen = talk.use("get_weather", city)
    frost = ", below zero" if seen["temperature_c"] < 0 else ""
    return f"It is {seen['temperature_c']} °C{frost} in {city}; the sky: {seen['sky']}."


def _humidity(talk: Talk) -> str:
    city = talk.cities[0]
    return f"The air in {city} has {talk.use('get_weather', city)['humidity_percent']} % humidity."


def _more_humid(talk: Talk) -> str:
    percent = {city: talk.use("get_weather", city)["humidity_percent"] for city in talk.cities}
    most = max(percent, key=lambda city: percent[city])
    return f"{most}, with {percent[most]} %."


def _packing(talk: Talk) -> str:
    city = talk.cities[0]
    return f"A warm coat: {city} expects {talk.use('get_forecast', city)['tomorrow']}."


def _tomorrow(talk: Talk) -> str:
    now, later = _now(talk), talk.use("get_forecast", talk.cities[0])["tomorrow"]
    return f"{now} The forecast for tomorrow: {later}."


def _cycling(talk: Talk) -> str:
    alert = talk.use("get_alerts", talk.cities[0])
    return f"Better not: there is an {alert['kind']} alert until {alert['until']}. {_now(talk)}"


def _warning(talk: Talk) -> str:
    alert = talk.use("get_alerts", talk.cities[0])
    return f"Yes: {alert['kind']}, until {alert['until']}." if alert else "No."


def _station(talk: Talk) -> str:
    seen = talk.use("get_weather", talk.cities[0])
    if not talk.as_json:
        return str(seen["id"])
    keys = ("city", "temperature_c", "humidity_percent")
    return json.dumps({key: seen[key] for key in keys})


def _rounded(talk: Talk) -> str:
    city = talk.cities[0]
    return f"About {round(talk.use('get_weather', city)['temperature_c'])} °C in {city}."


def _sky(talk: Talk) -> str:
    return str(talk.use("get_weather", talk.cities[0])["sky"])
