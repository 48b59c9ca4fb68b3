"""Words and wordings for tools: verbs, nouns, parameters, phrases, and everyday tools as people ask for them. Plain data.

The words of the hand-written tools in probe.py stay out of these lists.
"""
from words import words

VERB = words("""find book set get send open close start stop list add remove update check create delete move copy order rent
translate measure read write play pause lock unlock print paint repair clean count sort search share save load plan cancel
schedule fetch track convert""")
MORE_VERBS = words("""ship sign sell buy hire fix merge split compress encrypt export import archive publish reset refresh register assign
approve reject rename attach detach mount tune boil bake wash feed lift drop push pull draw fill empty warm cool review invite notify
call visit record scan crop rotate deploy build test verify validate submit answer forward grant revoke enable disable connect join leave
follow block report mark label group filter insert append replace trim compare estimate calculate compute solve plot draft edit
summarize classify detect extract generate inspect install upgrade restore backup sync upload download stream dim brighten heat charge
park tow deliver collect return pay transfer donate subscribe vote watch learn teach train hang fold pack unpack wrap weigh mix""")
NOUN = words("""weather hotel train flight lamp door note file song alarm message invoice ticket table room car bike parcel recipe
photo report task meeting user price stock map route timer heater window camera printer playlist calendar email contact budget
garden pump battery sensor game video account booking""")
# Verb and particle: written together, with a blank, or around the noun.
PHRASAL = words("turn_off turn_on switch_off switch_on power_up power_off back_up pick_up clean_up set_up wind_down close_down "
                "log_out sign_in hand_over pay_off check_in check_out roll_back scale_up scale_down put_away bring_back wake_up warm_up "
                "look_up fill_in break_down take_off write_down lock_up call_back mark_up tear_down spin_up")
# What users say instead of the verb of the tool's name, and the other way round.
SAME = {"find": ["look for", "search for", "locate", "get me"], "get": ["fetch", "show me", "give me", "tell me", "look up", "read"],
        "create": ["make", "set up", "add", "make me"], "delete": ["remove", "erase", "get rid of", "drop"], "start": ["begin", "run", "fire up"],
        "stop": ["halt", "end", "quit"], "book": ["reserve", "order"], "buy": ["order", "purchase", "get me"], "update": ["change", "edit", "modify"],
        "check": ["look at", "test", "inspect"], "send": ["mail", "pass on", "deliver"], "list": ["show me", "show", "give me"],
        "remove": ["delete", "take away", "take out"], "add": ["put in", "insert", "include"], "search": ["find", "look for"],
        "cancel": ["call off", "drop"], "fetch": ["get", "bring me", "load"], "repair": ["fix", "mend"], "open": ["open up", "show"],
        "write": ["compose", "draft"], "read": ["show me", "open"], "set": ["change", "put", "adjust"], "play": ["put on", "start"],
        "rent": ["hire", "book"], "order": ["buy", "get me"], "save": ["store", "keep"], "share": ["send", "pass on"],
        "schedule": ["plan", "arrange", "set up"], "count": ["add up", "tally"], "calculate": ["compute", "work out"],
        "measure": ["gauge", "determine"], "move": ["shift", "carry"], "print": ["put on paper", "output"], "upload": ["send up", "put online"]}
NO_ARGS = [("get_time", "tell the time"), ("get_date", "tell the date"), ("list_files", "list the files"),
           ("stop_music", "stop the music"), ("lock_all_doors", "lock all the doors"), ("get_status", "show the status"),
           ("clear_screen", "clear the screen"), ("roll_dice", "roll the dice"), ("flip_coin", "flip a coin"),
           ("restart_server", "restart the server"), ("list_users", "list the users"), ("take_photo", "take a photo")]
ENUMS = {"unit": words("celsius fahrenheit kelvin"), "size": words("small medium large"), "mode": words("fast normal careful"),
         "priority": words("low normal high urgent"), "color": words("red green blue yellow"), "format": words("json csv text html"),
         "order": words("asc desc"), "language": words("english german french spanish"), "class": words("first second third"),
         "seat": words("window aisle"), "period": words("day week month year"), "side": words("left right")}
PARAMS = {
    "string": words("city name title topic person street label owner code query path tag host subject brand station artist category"),
    "integer": words("count days level floor age rooms pages hours limit year channel row guests minutes index"),
    "number": words("price weight distance speed ratio temperature height width volume amount"),
    "boolean": words("quiet urgent private repeat verbose shared visible express insured") + ["dry_run", "read_only"],
}
# Short names as programs use them.
KEYS = words("""id key uid ref src dst dest msg num qty idx len pos lat lon loc addr tel zip sku url uri cmd arg opt val min max avg sum
from to at by on in of start end begin until since before after first last next prev old new""")
UNITS = words("g mg km m cm mm l ml seconds minutes hours days degrees percent coins pieces points pages volts watts")
TAILS = ["", "", "", "", " for a user", " by its name", " with the given values", " in the system", " and return the result", " of a client",
         " from the list", " for later", " in the house"]
PLEASE = ["Please {}.", "{}.", "{}.", "{}", "Can you {}?", "I need you to {}.", "Could you please {}?", "I want you to {}.", "Would you {}?",
          "{}, please.", "{} please", "Now {}.", "I would like you to {}.", "{}!", "Hey, {}.", "Hi! Please {}.", "Could you {}?", "Go ahead and {}."]
PAIRED = ["with {} {}", "{} {}", "{} {}", "{}: {}", "{}: {}", "{} = {}", "{}={}", "the {} is {}", "where the {} is {}", "with the {} {}",
          "with {}: {}", "using {} {}", "{} should be {}", "set {} to {}", "{} is {}", "use {} as {}", "and {} {}", "the {} should be {}",
          "let the {} be {}", "for {} take {}"]
TRUE = ["make it {}", "with {} on", "{}: yes", "{}: true", "{} is true", "{} on", "{} yes", "{} = true", "{}", "turn {} on", "{}: on",
        "with {}", "set {} to true", "{} enabled", "{} true", "it is {}", "keep {} on"]
FALSE = ["not {}", "with {} off", "{}: no", "{}: false", "{} is false", "{} off", "{} no", "{} = false", "not {}", "turn {} off", "{}: off",
         "without {}", "set {} to false", "{} disabled", "{} false", "it is not {}", "no {}", "keep {} off"]
NATURAL = {"city": "in {}", "days": "for {} days", "topic": "about {}", "person": "for {}", "hours": "for {} hours",
           "title": "called {}", "floor": "on floor {}", "price": "for {} coins", "minutes": "for {} minutes", "owner": "owned by {}",
           "guests": "for {} guests", "language": "in {}", "color": "in {}", "distance": "within {} km"}

# Tools as people really ask for them: name, descriptions, parameters (a list means an enum), ways to ask. A parameter that a
# wording does not mention is left out of the call.
COMMON = [
    ("get_weather", ["Get the weather in a city.", "Get the current weather for a location.", "Get weather."],
     {"city": "city", "unit": ["celsius", "fahrenheit"]},
     ["What is the weather in {city}?", "How is the weather in {city} in {unit}?", "Will it rain in {city}?", "Is it warm in {city}?",
      "What is the weather like in {city}?", "Weather in {city}?", "Tell me the weather for {city}.", "How warm is it in {city} in {unit}?",
      "I am going to {city}. What will the weather be?", "Do I need an umbrella in {city}?", "weather {city}", "Is it cold in {city}?"]),
    ("get_forecast", ["Get the weather forecast.", "Forecast for a place and some days."], {"place": "city", "days": "integer"},
     ["What is the forecast for {place} for {days} days?", "Give me a {days} day forecast for {place}.", "How will the weather be in {place} "
      "over the next {days} days?", "Forecast for {place}, please."]),
    ("set_timer", ["Start a timer."], {"minutes": "small"}, ["Set a timer for {minutes} minutes.", "Wake me in {minutes} minutes.",
                                                             "Timer: {minutes} minutes.", "Remind me in {minutes} minutes."]),
    ("set_alarm", ["Set an alarm clock."], {"time": "time", "label": "word"}, ["Set an alarm for {time}.", "Wake me up at {time}.",
                                                                             "Alarm at {time}, label {label}.", "I must get up at {time}."]),
    ("send_message", ["Send a message to a person."], {"person": "name", "text": "text", "urgent": "boolean"},
     ["Send {person} the message: {text}", "Write to {person}: {text}", "Tell {person}: {text}", 'Send a message to {person} that says "{text}".',
      'Message {person} "{text}"', 'Let {person} know: {text}']),
    ("send_email", ["Send an email.", "Send a mail to an address."], {"to": "email", "subject": "text", "content": "text"},
     ["Send an email to {to} with subject {subject}.", 'Email {to}: "{content}"', 'Write a mail to {to}, subject "{subject}", text "{content}".',
      'Send {to} an email with the subject "{subject}" and the text "{content}".']),
    ("book_flight", ["Book a flight between two cities."], {"from": "city", "to": "city", "class": ["economy", "business"]},
     ["Book a flight from {from} to {to}.", "I want to fly from {from} to {to} in {class} class.", "Get me a flight from {from} to {to}.",
      "Fly me to {to} from {from}.", "I need a {class} flight from {from} to {to}."]),
    ("book_hotel", ["Book a room in a hotel."], {"city": "city", "nights": "small", "guests": "small"},
     ["Book a hotel in {city} for {nights} nights.", "I need a room in {city} for {guests} guests and {nights} nights.",
      "Find me a hotel in {city} for {guests} people for {nights} nights.", "Reserve a room in {city} for {nights} nights."]),
    ("search_web", ["Search the web.", "Search the internet for a query."], {"query": "text"},
     ["Search the web for {query}.", "Look up {query}.", "Find out about {query}.", "Google {query}.", 'Search for "{query}".',
      "What does the internet say about {query}?", "search {query}"]),
    ("set_light", ["Switch the light of a room."], {"room": "place", "on": "on"},
     ["Turn the light in the {room} {on}.", "Switch {on} the light in the {room}.", "Light {on} in the {room}.", "Turn {on} the {room} light."]),
    ("convert_money", ["Convert an amount of money."], {"amount": "number", "from": "currency", "to": "currency"},
     ["Convert {amount} {from} to {to}.", "How much is {amount} {from} in {to}?", "What are {amount} {from} in {to}?",
      "I have {amount} {from}. How many {to} is that?"]),
    ("convert_units", ["Convert a value from one unit to another."], {"value": "number", "from_unit": "unit", "to_unit": "unit"},
     ["Convert {value} {from_unit} to {to_unit}.", "How many {to_unit} are {value} {from_unit}?", "What is {value} {from_unit} in {to_unit}?"]),
    ("play_song", ["Play a song.", "Play music."], {"title": "text", "repeat": "boolean"},
     ["Play {title}.", "I want to hear {title}.", 'Play the song "{title}".', "Put on {title}, please."]),
    ("get_distance", ["Get the distance between two cities."], {"from": "city", "to": "city"},
     ["How far is it from {from} to {to}?", "What is the distance between {from} and {to}?", "Distance from {from} to {to}?"]),
    ("set_temperature", ["Set the heating of a room."], {"room": "place", "degrees": "number"},
     ["Heat the {room} to {degrees} degrees.", "Set the {room} to {degrees} degrees.", "Make the {room} {degrees} degrees warm."]),
    ("multiply", ["Multiply two numbers."], {"a": "integer", "b": "integer"},
     ["Multiply {a} by {b}.", "Use the calculator: {a} times {b}.", "What is {a} times {b}?", "{a} * {b}"]),
    ("add_numbers", ["Add two numbers."], {"a": "integer", "b": "integer"}, ["Add {a} and {b}.", "What is {a} plus {b}?", "Sum {a} and {b}."]),
    ("calculator", ["Evaluate an expression.", "A calculator."], {"expression": "sum"},
     ["Calculate {expression}.", "What is {expression}?", "Compute {expression} with the calculator.", "How much is {expression}?"]),
    ("get_stock_price", ["Get the price of a stock."], {"symbol": "symbol"},
     ["What is the price of {symbol}?", "How is {symbol} doing on the stock market?", "Stock price of {symbol}?", "Get the {symbol} share price."]),
    ("read_file", ["Read a file.", "Read the contents of a file from disk."], {"path": "path"},
     ["Read {path}.", "Show me the file {path}.", "What is in {path}?", "Open {path}.", "cat {path}", "Print the contents of {path}."]),
    ("write_file", ["Write text to a file."], {"path": "path", "content": "text"},
     ['Write "{content}" to {path}.', 'Save "{content}" in the file {path}.', 'Put the text "{content}" into {path}.']),
    ("delete_file", ["Delete a file."], {"path": "path"}, ["Delete {path}.", "Remove the file {path}.", "rm {path}"]),
    ("list_directory", ["List the files of a folder."], {"path": "path"}, ["What files are in {path}?", "List {path}.", "ls {path}",
                                                                             "Show me the folder {path}."]),
    ("run_command", ["Run a shell command."], {"command": "command"}, ["Run {command}.", 'Run the command "{command}".', "Execute {command}"]),
    ("create_event", ["Put an event into the calendar."], {"title": "text", "date": "date"},
     ["Put {title} into my calendar on {date}.", "Add an event on {date}: {title}", 'Create the event "{title}" on {date}.',
      "I have {title} on {date}. Put it into my calendar."]),
    ("add_reminder", ["Add a reminder."], {"text": "text", "time": "time"}, ['Remind me at {time}: {text}', 'Remind me of "{text}" at {time}.',
                                                                            "Add a reminder: {text}"]),
    ("add_to_list", ["Add an item to the shopping list."], {"item": "word", "count": "small"},
     ["Put {item} on the shopping list.", "Add {count} {item} to my shopping list.", "We need {item}.", "I must buy {count} {item}."]),
    ("get_news", ["Get the latest news about a topic."], {"topic": "text"}, ["What is new about {topic}?", "Show me the news about {topic}.",
                                                                             "News on {topic}, please.", "Any news about {topic}?"]),
    ("get_user", ["Get a user by id."], {"user_id": "integer"}, ["Who is user {user_id}?", "Show me user {user_id}.", "Get user number {user_id}."]),
    ("find_contact", ["Find the phone number of a person."], {"name": "name"}, ["What is the phone number of {name}?", "Find {name}.",
                                                                              "How can I reach {name}?", "Give me the number of {name}."]),
    ("get_population", ["Get how many people live in a city."], {"city": "city"}, ["How many people live in {city}?", "Population of {city}?",
                                                                                 "How big is {city}?"]),
    ("get_time_in", ["Get the local time of a city."], {"city": "city"}, ["What time is it in {city}?", "Local time in {city}?",
                                                                          "How late is it in {city}?"]),
    ("define_word", ["Look up a word in the dictionary."], {"word": "word"}, ["What does {word} mean?", "Define {word}.",
                                                                            'Look up the word "{word}".', "What is the meaning of {word}?"]),
    ("track_parcel", ["Track a parcel."], {"code": "code"}, ["Where is my parcel {code}?", "Track {code}.", "Has the parcel {code} arrived?"]),
    ("order_food", ["Order food."], {"dish": "word", "count": "small"}, ["Order {count} {dish}.", "I would like {count} {dish}.",
                                                                        "I want to eat {dish}.", "Get me {dish}."]),
    ("call_person", ["Call a person by phone."], {"name": "name"}, ["Call {name}.", "Phone {name}, please.", "I want to talk to {name}."]),
    ("open_page", ["Open a web page."], {"url": "url"}, ["Open {url}.", "Go to {url}.", "Show me {url}.", "Visit the page {url}."]),
    ("get_directions", ["Get the way from one place to another."], {"start": "city", "goal": "city", "by": ["car", "bike", "foot"]},
     ["How do I get from {start} to {goal}?", "Show me the way from {start} to {goal} by {by}.", "Directions from {start} to {goal}."]),
    ("start_recipe", ["Show a recipe."], {"dish": "word"}, ["How do I cook {dish}?", "Give me a recipe for {dish}.", "I want to make {dish}."]),
    ("create_note", ["Write a note."], {"text": "text"}, ["Note: {text}", 'Write down "{text}".', "Take a note: {text}", "Make a note that says {text}"]),
    ("set_volume", ["Set the volume of the speaker."], {"level": "small"}, ["Set the volume to {level}.", "Volume {level}.",
                                                                           "Make it louder: {level}."]),
    ("lock_door", ["Lock a door of the house."], {"door": "place"}, ["Lock the {door} door.", "Is the {door} locked? Lock it.",
                                                                    "Please lock the {door}."]),
    ("get_order", ["Get the state of an order."], {"order_id": "code"}, ["Where is my order {order_id}?", "What about order {order_id}?",
                                                                        "Check the order {order_id}.", "State of order {order_id}?"]),
]
# Tools of which the model can do small cases itself.
SUMS = ("multiply", "add_numbers", "calculator")
# Other names that a program may give such a parameter.
RENAMES = {"city": ["city", "location", "place", "city_name"], "person": ["person", "recipient", "to", "name"], "text": ["text", "message", "content"],
           "from": ["from", "origin", "source", "from_city"], "to": ["to", "destination", "target"], "query": ["query", "q", "keywords"],
           "path": ["path", "filename", "file_path"], "title": ["title", "name", "song"], "symbol": ["symbol", "ticker"], "minutes": ["minutes", "duration"],
           "room": ["room", "area"], "date": ["date", "day"], "time": ["time", "at"], "word": ["word", "term"], "name": ["name", "contact", "person"]}
