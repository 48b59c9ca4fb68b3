"""Tools and requests written by hand, in words that the generator does not know as such: what lies outside its language.

Never trained on. `HAND` is the recipe's own probe; `SECOND` is a later one with other wordings. An entry is (name,
description, parameters (a list is an enum), request, arguments).
"""
HAND = [
    ("get_exchange_rate", "Look up an exchange rate.", {"base": "string", "quote": "string"},
     "Get the exchange rate, base EUR, quote USD.", {"base": "EUR", "quote": "USD"}),
    ("create_ticket", "Open a support ticket.", {"customer_id": "integer", "body": "string", "priority": ["p1", "p2", "p3"]},
     "Create a ticket with customer id 4411, body: printer is on fire, priority p1.",
     {"customer_id": 4411, "body": "printer is on fire", "priority": "p1"}),
    ("resize_image", "Resize an image.", {"file": "string", "width_px": "integer", "keep_ratio": "boolean"},
     'Resize the image with file "sunset_04.png", width px 1280, keep ratio on.',
     {"file": "sunset_04.png", "width_px": 1280, "keep_ratio": True}),
    ("find_restaurant", "Find a restaurant.", {"cuisine": "string", "town": "string", "vegan": "boolean"},
     "Find a restaurant with cuisine thai, town: Heidelberg, vegan: yes.", {"cuisine": "thai", "town": "Heidelberg", "vegan": True}),
    ("ping_host", "Ping a host.", {"hostname": "string", "attempts": "integer"},
     "Please ping the host, hostname: db7.internal.example.net, attempts 5.", {"hostname": "db7.internal.example.net", "attempts": 5}),
    ("query_database", "Run a query.", {"sql": "string", "max_rows": "integer"},
     'Query the database with the sql "select name from birds", max rows 20.', {"sql": "select name from birds", "max_rows": 20}),
    ("water_plants", "Water the plants.", {"zone": ["roof", "terrace", "greenhouse"], "litres": "number"},
     "Can you water the plants, zone greenhouse, litres 7.5?", {"zone": "greenhouse", "litres": 7.5}),
    ("get_weather", "Get the weather.", {"city": "string"}, "What is the weather in Reykjavik?", {"city": "Reykjavik"}),
    ("launch_rocket", "Launch a rocket.", {"payload_kg": "number", "orbit": ["leo", "geo", "moon"]},
     "Launch the rocket with orbit geo and payload kg 850.25.", {"payload_kg": 850.25, "orbit": "geo"}),
    ("translate_text", "Translate a text.", {"text": "string", "target_lang": "string"},
     'Translate the text "Where is my hat" with target lang: Swahili.', {"text": "Where is my hat", "target_lang": "Swahili"}),
    ("shutdown", "Shut the machine down.", {}, "Please shut the machine down.", {}),
    ("book_dentist", "Book a visit at the dentist.", {"patient": "string", "when": "string", "urgent": "boolean"},
     "Book a dentist, patient: Bartholomew Quigley, when: 2031-07-19, not urgent.",
     {"patient": "Bartholomew Quigley", "when": "2031-07-19", "urgent": False}),
]

SECOND = [
    ("issue_refund", "Refund a purchase.", {"receipt_no": "string", "cents": "integer"},
     "Issue a refund for receipt no RX-20931, cents 1599.", {"receipt_no": "RX-20931", "cents": 1599}),
    ("mute_participant", "Mute somebody in a call.", {"participant": "string", "seconds": "integer"},
     "Could you mute the participant Gundula Ottersbach? Seconds: 45.", {"participant": "Gundula Ottersbach", "seconds": 45}),
    ("scan_network", "Scan a network.", {"subnet": "string", "aggressive": "boolean"},
     "Scan the network, subnet 10.20.0.0/16, not aggressive.", {"subnet": "10.20.0.0/16", "aggressive": False}),
    ("polish_silverware", "Polish the silverware.", {"drawer": ["upper", "lower"], "cloth": "string"},
     "polish the silverware with drawer upper and cloth microfibre", {"drawer": "upper", "cloth": "microfibre"}),
    ("get_tide_table", "Tides of a harbour.", {"harbour": "string"}, "Show me the tide table, harbour Wilhelmshaven.",
     {"harbour": "Wilhelmshaven"}),
    ("kick_user", "Kick a user out of a chatroom.", {"nickname": "string", "reason": "string"},
     'Kick the user with nickname xX_dr4gon_Xx, reason "spamming all day".', {"nickname": "xX_dr4gon_Xx", "reason": "spamming all day"}),
    ("mint_token", "Mint a token.", {"wallet": "string", "supply": "integer", "burnable": "boolean"},
     "I need you to mint a token: wallet 0x9fA3c1, supply 21000000, burnable: no.", {"wallet": "0x9fA3c1", "supply": 21000000, "burnable": False}),
    ("brew_coffee", "Brew coffee.", {"beans": "string", "grams": "number", "milk": "boolean"},
     "Please brew coffee with beans Yirgacheffe, grams 18.5, milk on.", {"beans": "Yirgacheffe", "grams": 18.5, "milk": True}),
    ("get_current_weather", "Get the current weather in a given location", {"location": "string", "unit": ["celsius", "fahrenheit"]},
     "What's the weather like in Thessaloniki?", {"location": "Thessaloniki"}),
    ("calibrate_telescope", "Calibrate a telescope.", {"azimuth": "number", "elevation": "number"},
     "Calibrate the telescope. Azimuth: 211.4. Elevation: 37.", {"azimuth": 211.4, "elevation": 37}),
    ("dispatch_ambulance", "Send an ambulance.", {"crossroad": "string", "patients": "integer"},
     'Dispatch an ambulance to "Elm Street / 5th Avenue", patients 2.', {"crossroad": "Elm Street / 5th Avenue", "patients": 2}),
    ("tail_logs", "Show the end of a log.", {"pod": "string", "namespace": "string", "lines": "integer"},
     "tail the logs, pod=checkout-7d9f, namespace=prod-eu, lines=200", {"pod": "checkout-7d9f", "namespace": "prod-eu", "lines": 200}),
]


def schema(entry):
    """The JSON object of a probe's tool; parameters that its request leaves out are optional."""
    name, about, params, _, args = entry
    props = {k: {"type": "string", "enum": t} if isinstance(t, list) else {"type": t} for k, t in params.items()}
    return {"type": "function", "function": {"name": name, "description": about, "parameters": {
        "type": "object", "properties": props, "required": [k for k in props if k in args]}}}


def tasks(entries):
    """[(tools, request, call)]: each request beside its own tool and two others."""
    tools = [schema(e) for e in entries]
    return [([tools[(i + j) % len(entries)] for j in (2, 0, 1)], e[3], {"name": e[0], "arguments": e[4]})
            for i, e in enumerate(entries)]
