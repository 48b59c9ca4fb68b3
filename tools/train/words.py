"""Word lists and knowledge tables of the generator. Plain data: edit freely, everything adapts.

The words of the hand-written tools in probe.py stay out of these lists, so that the probe measures copying.
"""


def pairs(text):
    """'a:b, c:d' -> [('a', 'b'), ('c', 'd')]."""
    return [tuple(x.strip().split(":")) for x in text.replace("\n", " ").split(",")]


def words(text):
    """Words separated by white space; an underscore stands for a blank."""
    return [w.replace("_", " ") for w in text.split()]


FIRST = words("""Ada Alma Amos Anya Arlo Bela Boris Carl Cleo Dana Dora Edda Elio Emil Enid Esra Fay Finn Flora Gil Greta Hana
Hugo Ida Igor Ines Ivo Jana Jonas Juno Kai Kira Lars Lena Leo Lina Lotte Luca Mara Max Mila Mira Nadia Nils Nina Noor Olga
Omar Oona Otto Pia Paul Rafa Rhea Rosa Ruben Sami Sara Selma Silas Sven Tara Theo Tilda Tom Uma Vera Viggo Wanda Yara Zeno""")
LAST = words("""Adler Bright Carver Dale Ember Fisher Grove Hart Iver Jansen Keller Lowe Marsh Norton Oakes Penn Quill Reed Stone
Thorne Underhill Vale Winter York Zeller Archer Barlow Croft Drake Ellis Frost Gale Holm Ingram Joyner Kemp Lund Moss Nash Orr""")
ADJ = words("""red blue green yellow white black brown grey silver golden old new small large tiny heavy light round square long
short broken shiny dusty wooden iron paper glass soft hard cold warm wet dry clean striped painted hidden quiet noisy plain""")
OBJECT = words("""kite lantern basket key drum ladder mirror bottle carpet clock hammer helmet candle blanket boat bucket bell
bridge brush button cart chair coat compass cup door engine fan flag fork gate glove guitar hat jar kettle knife lamp letter
lock map mask medal needle notebook oven parcel pencil piano pillow plate pot radio ring rope saddle sail scarf shelf shield
shoe sled spoon stamp statue stool suitcase table tent ticket tower trumpet tunnel umbrella vase violin wagon wallet wheel
whistle window""")
PLACE = words("""attic barn cellar garden harbour kitchen library market mill museum office orchard park school shed shop stable
station theatre tower valley village workshop yard forest meadow castle chapel cave inn""")
CITY = words("""Paris Rome Oslo Berlin Madrid Lisbon Vienna Prague Warsaw Dublin Athens Cairo Tokyo Lima Quito Delhi Seoul Hanoi
Bern Riga Sofia Zagreb Tunis Accra Boston Chicago Denver Dallas Toronto Sydney Leeds Lyon Milan Porto Ghent Basel Krakow Split
Bergen Malmo""")
JOB = words("baker farmer sailor teacher doctor painter miller weaver gardener singer builder driver pilot cook clerk judge tailor "
            "potter fisher shepherd")
FOOD = words("soup bread cake pie rice stew jam cheese salad porridge pancakes cookies apples plums honey butter beans noodles")

CAPITAL = pairs("""France:Paris, Italy:Rome, Norway:Oslo, Germany:Berlin, Spain:Madrid, Portugal:Lisbon, Austria:Vienna,
Poland:Warsaw, Ireland:Dublin, Greece:Athens, Egypt:Cairo, Japan:Tokyo, Peru:Lima, Ecuador:Quito, India:New Delhi,
South Korea:Seoul, Vietnam:Hanoi, Switzerland:Bern, Latvia:Riga, Bulgaria:Sofia, Croatia:Zagreb, Tunisia:Tunis, Ghana:Accra,
Sweden:Stockholm, Finland:Helsinki, Denmark:Copenhagen, Belgium:Brussels, Hungary:Budapest, Romania:Bucharest, Turkey:Ankara,
Russia:Moscow, China:Beijing, Thailand:Bangkok, Kenya:Nairobi, Morocco:Rabat, Canada:Ottawa, Cuba:Havana, Chile:Santiago,
Argentina:Buenos Aires, Brazil:Brasilia, Australia:Canberra, Estonia:Tallinn, Lithuania:Vilnius,
Ukraine:Kyiv, Serbia:Belgrade, Slovenia:Ljubljana, Slovakia:Bratislava, Nepal:Kathmandu, Iran:Tehran, Iraq:Baghdad,
Lebanon:Beirut, Senegal:Dakar, Uganda:Kampala, Ethiopia:Addis Ababa, Colombia:Bogota, Uruguay:Montevideo, Mexico:Mexico City""")
COLOUR = pairs("""a banana:yellow, grass:green, snow:white, coal:black, blood:red, a lemon:yellow, a carrot:orange,
a strawberry:red, chocolate:brown, milk:white, the clear sky:blue, a leaf:green, the sun:yellow, a pumpkin:orange, a raven:black,
a swan:white, a frog:green, a cherry:red, a cucumber:green, an elephant:grey, a flamingo:pink, honey:golden, a tomato:red,
salt:white, tar:black, a sapphire:blue, a ruby:red, an emerald:green, lavender:purple, an eggplant:purple, rust:brown,
a polar bear:white, a lobster:red, spinach:green, butter:yellow, ash:grey""")
OPPOSITE = pairs("""hot:cold, big:small, up:down, left:right, day:night, open:closed, wet:dry, fast:slow, happy:sad, light:dark,
early:late, rich:poor, strong:weak, full:empty, young:old, high:low, near:far, loud:quiet, hard:soft, clean:dirty, thick:thin,
wide:narrow, deep:shallow, true:false, first:last, inside:outside, before:after, above:below, begin:end, buy:sell, win:lose,
push:pull, push up:pull down, sweet:sour, smooth:rough, sharp:blunt, brave:afraid, awake:asleep, heavy:weightless, always:never""")
YOUNG = pairs("""cow:calf, dog:puppy, cat:kitten, horse:foal, sheep:lamb, goat:kid, pig:piglet, hen:chick, duck:duckling,
goose:gosling, swan:cygnet, bear:cub, lion:cub, deer:fawn, frog:tadpole, kangaroo:joey, owl:owlet, eagle:eaglet, rabbit:kit,
seal:pup, whale:calf, elephant:calf, fox:cub, wolf:pup, spider:spiderling, fish:fry, butterfly:caterpillar, hare:leveret,
pigeon:squab, salmon:parr""")
SOUND = pairs("""cow:moos, dog:barks, cat:meows, horse:neighs, sheep:bleats, pig:oinks, hen:clucks, duck:quacks, goose:honks,
lion:roars, frog:croaks, owl:hoots, wolf:howls, snake:hisses, bee:buzzes, mouse:squeaks, crow:caws, donkey:brays, elephant:trumpets,
rooster:crows, turkey:gobbles, pigeon:coos, bear:growls, monkey:chatters, cricket:chirps, goat:bleats, parrot:squawks, fly:buzzes,
hyena:laughs, songbird:sings""")
LEGS = pairs("""horse:4, hen:2, spider:8, ant:6, bee:6, snake:0, fish:0, cow:4, dog:4, crab:10, duck:2, fly:6, beetle:6, cat:4,
fox:4, eagle:2, ostrich:2, worm:0, scorpion:8, lobster:10, frog:4, lizard:4, penguin:2, butterfly:6, moth:6, wasp:6, whale:0,
lion:4, goose:2, snail:0""")
KIND = pairs("""apple:fruit, pear:fruit, plum:fruit, cherry:fruit, grape:fruit, carrot:vegetable, onion:vegetable, cabbage:vegetable,
potato:vegetable, spinach:vegetable, eagle:bird, owl:bird, robin:bird, crow:bird, salmon:fish, trout:fish, cod:fish, shark:fish,
ant:insect, bee:insect, beetle:insect, oak:tree, pine:tree, birch:tree, maple:tree, rose:flower, tulip:flower, daisy:flower,
hammer:tool, saw:tool, spade:tool, violin:instrument, drum:instrument, flute:instrument, iron:metal, copper:metal, silver:metal,
chess:game, tennis:game, blue:colour, seven:number, Monday:day, March:month, shirt:garment, sock:garment, coat:garment""")
PLURAL = pairs("""mouse:mice, foot:feet, tooth:teeth, child:children, man:men, woman:women, goose:geese, ox:oxen, leaf:leaves,
knife:knives, wolf:wolves, life:lives, box:boxes, bus:buses, city:cities, baby:babies, cherry:cherries, potato:potatoes,
tomato:tomatoes, hero:heroes, dish:dishes, fox:foxes, sheep:sheep, fish:fish, deer:deer, half:halves, loaf:loaves, thief:thieves,
berry:berries, penny:pennies""")
PAST = pairs("""go:went, see:saw, eat:ate, run:ran, sing:sang, swim:swam, write:wrote, take:took, give:gave, come:came, make:made,
say:said, find:found, think:thought, buy:bought, bring:brought, catch:caught, teach:taught, fly:flew, grow:grew, know:knew,
throw:threw, begin:began, drink:drank, sleep:slept, keep:kept, feel:felt, leave:left, lose:lost, speak:spoke, break:broke""")
SIZE = words("ant bee mouse frog hen cat fox dog wolf sheep pig deer lion bear cow horse giraffe elephant whale")  # ascending
DAYS = words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
MONTHS = words("January February March April May June July August September October November December")
NUMBERS = words("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
                "eighteen nineteen twenty")
LETTERS = list("ABCDEFGHIJKLMNOPQRSTUVWXYZ")

# name -> (pairs, questions, answer, short form of a follow-up question)
TABLES = {
    "capital": (CAPITAL, ["What is the capital of {}?", "Which city is the capital of {}?", "Name the capital of {}.",
                          "Tell me the capital city of {}."], "The capital of {0} is {1}.", "And of {}?"),
    "colour": (COLOUR, ["What colour is {}?", "Which colour does {} have?", "Tell me the colour of {}."], "{0} is {1}.", "And {}?"),
    "opposite": (OPPOSITE, ["What is the opposite of {}?", "Give the opposite of {}.", "Which word is the opposite of {}?"],
                 "The opposite of {0} is {1}.", "And of {}?"),
    "young": (YOUNG, ["What is a young {} called?", "What do you call a baby {}?", "Name the young of a {}."],
              "A young {0} is called a {1}.", "And a young {}?"),
    "sound": (SOUND, ["What sound does a {} make?", "How does a {} sound?", "What does a {} do to be heard?"], "A {0} {1}.", "And a {}?"),
    "legs": (LEGS, ["How many legs does a {} have?", "Count the legs of a {}.", "A {} has how many legs?"],
             "A {0} has {1} legs.", "And a {}?"),
    "kind": (KIND, ["What kind of thing is {}?", "To which group does {} belong?", "Is {} a fruit, an animal or something else?"],
             "{0} belongs to the group {1}.", "And {}?"),
    "plural": (PLURAL, ["What is the plural of {}?", "Give the plural of {}.", "How do you write more than one {}?"],
               "The plural of {0} is {1}.", "And of {}?"),
    "past": (PAST, ["What is the past tense of {}?", "Give the past of {}.", "How do you say {} in the past?"],
             "The past of {0} is {1}.", "And of {}?"),
}

# Story arcs: each sentence has variants; {N} hero, {A} animal, {P} he/she, {Q} his/her, {F} friend, {B} friend's animal,
# {O} object, {L} place, {D} food, {M} other place.
ARCS = [
    [["One morning {N} could not find {Q} {O}.", "One day {Q} {O} was gone."],
     ["{P} looked in the {L}, but it was not there.", "{P} searched the {L} from top to bottom and found nothing."],
     ["{N} sat down and felt sad.", "{N} began to cry a little."],
     ["Then {F} the {B} came by and asked what was wrong.", "{F}, a kind {B}, heard about it and wanted to help."],
     ["Together they walked to the {M}.", "They went to the {M} side by side."],
     ["There, behind the {M}, lay the {O}.", "Under a heap of leaves they saw the {O}."],
     ["{N} was so happy that {P2} gave {F} some {D}.", "{N} hugged {F}, and they ate {D} together."]],
    [["{N} wanted to race against {F} the {B}.", "{F} the {B} said that nobody could run as fast as {N}."],
     ["They started at the {L} and had to reach the {M}.", "The way led from the {L} to the {M}."],
     ["At first {F} was far ahead.", "Soon {F} was almost out of sight."],
     ["But {F} stopped to eat {D} and fell asleep.", "But {F} grew proud, lay down and closed both eyes."],
     ["{N} went on, step by step, and never stopped.", "{N} did not run fast, but {P2} did not rest."],
     ["When {F} woke up, {N} was already at the {M}.", "{N} reached the {M} first and rang the bell."],
     ["{F} laughed and said that slow and steady is a good way too.", "After that {F} never boasted again."]],
    [["Dark clouds came, and it began to rain.", "A big storm came over the hills."],
     ["{N} was alone in the {L}.", "{N} ran to the {L} to stay dry."],
     ["{P} heard a small voice outside.", "Something knocked at the door."],
     ["It was {F} the {B}, who was wet and cold.", "There stood {F}, a {B}, with water in both shoes."],
     ["{N} opened the door and said, \"Come in!\"", "\"Please sit by the fire,\" said {N}."],
     ["They shared the {D} and told stories until the rain stopped.", "{N} made hot {D}, and they watched the rain."],
     ["Since that day {N} and {F} have been friends.", "In the morning the sun came out, and they walked home as friends."]],
    [["{N} wanted to build a {O} for {F} the {B}.", "{F} the {B} wished for a {O}, and {N} had an idea."],
     ["{P} took some wood from the {L}.", "{P} found what {P2} needed in the {L}."],
     ["The first {O} broke at once.", "The first try fell apart."],
     ["The second one was too small.", "The second try was crooked."],
     ["{N} was tired, but {P2} did not give up.", "{N} ate some {D} and tried again."],
     ["The third {O} was just right.", "The third time everything fitted."],
     ["{F} carried it proudly to the {M}.", "{F} said that it was the best gift in the world."]],
    [["It was the birthday of {F} the {B}, and {N} wanted to make {D}.", "{N} decided to cook {D} for {F} the {B}."],
     ["{P} went to the {L} to buy what was missing.", "But something was missing, so {P2} went to the {L}."],
     ["On the way {P2} met an old {B2} with nothing to eat.", "By the road sat a hungry {B2}."],
     ["{N} gave away half of the food.", "{N} shared what {P2} had."],
     ["The old {B2} thanked {N} and gave {O2} in return.", "As a thank you, {N} got {O2}."],
     ["{F} loved the {D} and the strange gift as well.", "At the party everyone ate {D}, and {F} was glad."],
     ["And so a small kindness came back.", "{N} learned that sharing makes a party bigger."]],
    [["At night {N} heard a strange noise from the {L}.", "Something in the {L} went knock, knock, knock."],
     ["{P} was afraid and hid under the blanket.", "{N} did not dare to move."],
     ["Then {P2} thought, \"I will look, but not alone.\"", "\"I must be brave,\" {P2} said softly."],
     ["{P} woke {F} the {B}, and they took the {O} with them.", "With {F} the {B} and a {O} {P2} went out into the dark."],
     ["Slowly they opened the door of the {L}.", "They tiptoed to the {L} and looked in."],
     ["It was only the wind that moved an old {O3}.", "There sat a little owl that was eating {D}."],
     ["They laughed and slept well until morning.", "From then on {N} was not afraid of the dark."]],
]
ANIMAL = words("fox bear mouse rabbit hedgehog cat dog duck goose owl frog pig goat sheep horse deer squirrel otter badger beaver hen "
               "donkey mole turtle")
TRAIT = words("kind brave clever shy cheerful curious lazy careful hungry friendly quiet proud patient")
MORAL = ["It was a good day.", "And that was the end of the story.", "Everyone was glad.", "They never forgot that day.",
         "So it went, and so it is told.", "Then the stars came out."]
NOISE = ["The {ADJ} {OBJ} stood near the {PLACE}.", "Nobody in the {PLACE} knew why the {OBJ} was {ADJ}.",
         "{NAME} walked past the {PLACE} with some {FOOD}.", "In the {PLACE} there was a {ADJ} {OBJ} and a {OBJ2}.",
         "{NAME} the {JOB} ate {FOOD} every day.", "It rained on the {PLACE} for {N} days.", "{NAME} sold {N} plates to a {JOB}.",
         "The {JOB} of {CITY} likes {FOOD}.", "{NAME} has been to {CITY} {N} times.", "After lunch {NAME} cleaned the {ADJ} {OBJ}."]
# Facts: (statement, question, answer); {K} is the unique key, {V} the value.
FACTS = [
    ("name", "The {K} belongs to {V}.", "Who does the {K} belong to?", "The {K} belongs to {V}."),
    ("digits", "The secret number of the {K} is {V}.", "What is the secret number of the {K}?", "The secret number of the {K} is {V}."),
    ("coined", "The password for the {K} is {V}.", "What is the password for the {K}?", "The password for the {K} is {V}."),
    ("place", "The {K} was hidden in the {V}.", "Where was the {K} hidden?", "The {K} was hidden in the {V}."),
    ("city", "The {K} was made in {V}.", "In which city was the {K} made?", "The {K} was made in {V}."),
    ("price", "The {K} costs {V} coins.", "How many coins does the {K} cost?", "The {K} costs {V} coins."),
]
# Further words for names of parameters, tools, keys and values, and for free text: copying must work for words that belong to no
# table. What a list cannot give, invented words and random letters do.
MORE = words("""ability access action address advice alert answer area article asset attention audience author average award balance band
basis beach bill birth block blood board bonus border branch breakfast breath budget building business button buyer campaign
capacity card career case cash cause cell center chance change channel chapter charge charity chart choice claim class client
climate cloud coach coast coffee college comment company concept concert condition connection content contest context contract
control copy corner cost country couple course cover credit crew crisis cross culture currency current cycle damage data deal
debate decade decision degree delay delivery demand department depth description design desk detail device diet difference
direction discount discussion disease dish display district division document dollar draft dream dress drink duty economy edge
editor education effect effort election element employee energy engineer entry environment equipment error escape estate
evening event evidence exam exercise exit expert export extension eye face factor failure family fashion feature feedback
field figure filter finance finger focus folder foot force form foundation frame freedom friend front fuel function future gap
gas goal gold government grade grass ground group growth guard guest guide habit hair half hall hand head health heart heat
history hole holiday home honor hope hospital house human idea impact import income index industry input inside institute
insurance interest internet interview investment island issue item job joint journey judge key kind king knowledge label lack
lady lake land law layer leader league lesson level library license life link liquid local loss love luck lunch magazine
manager margin mark market master match material matter meal meaning measure media medicine member memory method middle mind
minute mission mistake mixture model moment money mood motor mountain mouth movie music nation nature network news night node
north object offer officer oil operation opinion option orange origin output owner pace package page pain pair panel parent
park part partner party passage passenger pattern payment peace people percent performance period phase phone phrase picture
piece pipe pitch place plane plastic platform player poem point police policy pool population port position post potato power
practice presence pressure prize problem process product profile profit program progress project promise property proposal
protein purpose quality quantity quarter queen question queue race rain range reason receipt record reference region relation
release remark rent reply request rescue resource response rest revenue review reward rice risk river road role rule safety
salary sample sand scale scene science score screen script sea season second section sector security seed segment sequence
series server service shape share ship shoulder side sign signal silence sister site skill skin sky sleep society soil
solution sound source south space speaker spirit sport spot staff stage standard star state step stone storage store storm
strategy stream strength stress structure student studio style subject success sugar suggestion summary summer supply support
surface survey switch symbol system taste tax team technology thought threat title tone tool topic total tour track trade
tradition training transport travel treatment tree trend trial trip truth type union unit update user vacation value variety
version video view visit voice vote wage wall war warning waste wave weakness wealth weekend weight west wife wind wine winner
winter wish witness world writer year youth able active afraid alive angry basic bitter black blind brave brief bright broad
busy calm central cheap chief civil clear close common complete correct daily dark dead deep direct early eastern easy empty
equal exact extra fair famous fast final fine firm flat foreign free fresh full funny general gentle global grand great happy
heavy high huge ideal inner junior just kind large late legal likely local lonely loose loud lucky main major modern monthly
narrow national native natural near nervous next normal open outer past perfect personal pleasant polite poor popular possible
pretty previous private proper public pure quick rare raw ready real recent regular rich right rough round royal rural sad
safe senior separate serious sharp short similar simple single slow smart social solid special stable steady strange strict
strong sudden sweet tall thick thin tight total tough typical unique upper urban useful usual vast visible warm weak weekly
western whole wide wild wise wrong yearly""")
FUNCTION = words("the a an of to in on is are was were my your his her our their from with and or for not it this that by at where what "
                 "when how who why if then than very more most into over under after before")

# Parts of invented words: English-like, names of places, names of people.
PREFIX = words("un re pre over under out sub inter fore mis dis non anti auto bio hydro micro multi semi super ultra tele photo geo neo")
ROOT = words("""act band bark bell bend bind blot bolt brand brick brim buck bulk burn camp carp cast chant chart chip clad clamp clasp claw
clip clog clot coil cord cork crack craft crane crank creek crest crust curl dash ditch dock drift drill dusk fang fern flap flare flash
fleck fling flint flock flour foam fold forge fract frost fudge gale gem gild gland gleam glide globe gloss graft gram grasp grate grip
grit groom gulf gust hatch haul haze hedge helm herb hinge hive hoist hook hull jest joust kelp kiln knack knit knot lace latch leap ledge
limb lime loft loom lure malt mast maze melt mesh mint moat mock mould nest nick notch nudge oath ox pact palm patch peel perch pierce
pinch pitch plank pledge plot pluck plumb plume pouch prank press prism probe prong prune pulse quake quench quill raft rally ramp ranch
reef rein rift rind rinse rivet roam roost rust sack sage scald scoop scorch scout scrape scroll seam shade shale shear shelf shift shred
shrub shrug sift silt skid slab slate sleet slope smelt snare soot spade span spark spice spike spin spire splash splint spool spray sprig
spruce squash stack stain stalk stem stitch stock strap straw strand strip stump swarm sweep swirl thatch thorn thread thrust tide tilt
timber toast torch trace tract trail trap trek trim trunk tuft tusk twig twist vault veil venture verse vine weld wharf whisk wick wilt
wisp yarn yoke""")
SUFFIX = words("er ing ed s ion able ful less ness ment ly ish ist ism ity al ic ous ive ate ize or age hood ship ward wise like en y")
STEM = words("""Alten Ash Baden Bel Black Bran Brook Castel Cold Dal Darm Eber Eisen Elm Fair Falken Fels Free Gold Gran Grün Haupt High
Hohen Hud Ingol Kal Kar Kirk Kon Kras Lang Lind Long Mal Mar Mon Mont Neu New Nor North Novo Ober Old Oster Ox Pal Pem Petro Port Queens
Rosen Rot San Santa Schwarz Sel Silver Sol South Stein Stock Stol Sund Tal Tor Vel Ver Villa Vla Wal Wei West White Wind Wolf Wood Ystr
Zar Zell Ak Akur Anda Bal Chan Dje Esk Gua Hai Hua Isa Jama Kili Kuma Lago Mbo Nga Oka Pata Qui Sapp Tam Ulaan Vara Xi Yoko Zam""")
ENDING = words("""berg burg bury by dale den dorf feld field ford furt gard grad ham haven heim holm hurst hus land ley lin mark mere mond
mouth nik ov over pol polis port rode sk stad stadt stein stett ton torp vale vik ville wald wick witz wood worth ara ano iro aki eira
ezh una iga oro uay uro eso ima oka enko avia ista undi elia""")
GIVEN = words("""Abel Agatha Alaric Amelie Anselm Astrid Barnaby Beatrix Benedict Bronwyn Cassius Cecily Clementine Conrad Cordelia Cosmo
Cyrus Dagmar Delphine Desmond Edgar Eleanor Elspeth Ernesto Esteban Eugenia Felix Fiona Frederick Genevieve Giovanni Gustav Gwendolyn
Harriet Heloise Hortense Humphrey Ignatius Imogen Isolde Jasper Joaquin Josephine Katarina Lavinia Leopold Lysander Magnus Marguerite
Matthias Maximilian Mercedes Mortimer Natasha Nikolai Octavia Ottilie Percival Philippa Quentin Rafaela Reginald Rosalind Rupert
Sebastian Seraphina Sigrid Solveig Tabitha Thaddeus Theodora Tobias Ursula Valentina Vladimir Wilhelmina Winifred Xavier Yolanda
Zachary Zuleika Aiko Amara Anjali Babatunde Chidi Chiyo Deepak Fatima Haruki Ibrahim Jamal Keiko Kwame Lakshmi Mei Ngozi Priya Rahul
Rashid Sakura Tariq Wei Yusuf Zainab""")
SURNAME = words("""Abernathy Applegate Ashworth Bainbridge Beaumont Blackwood Bradshaw Carmichael Castellano Chatterjee Cholmondeley
Davenport Delacroix Eisenhart Fairweather Featherstone Fitzgerald Galbraith Goldsmith Greenfield Hathaway Hawthorne Hofmann Huxtable
Iwasaki Jankowski Johansson Kavanagh Kowalczyk Lancaster Lindqvist Llewellyn MacGregor Marchetti McAllister Middleton Montgomery Nakamura
Nightingale O'Brien Okonkwo Oyelaran Papadopoulos Pemberton Petrov Ramirez Rosenberg Rutherford Sanchez Schneider Silverstein Sinclair
Skarsgard Sokolov Sorensen Stepanov Takahashi Thornberry Tchaikovsky Vandenberg Vasquez Wainwright Weatherby Whitmore Wojcik Yamamoto
Zimmermann Ng Li Wu Das Roy Kim""")

# Everyday talk. Several wordings on the left, several answers on the right (one is drawn; the first is the usual one).
SELF = "I am Flint tiny, a small language model that ships with sumi."
HELP = "I can answer small questions, tell stories, read long texts and call tools."
SMALL_TALK = [
    (["Hello!", "Hi!", "Hello", "hi", "Hey", "Hello there!", "Good morning!", "Good afternoon!", "Good evening!", "Hi there", "hello flint"],
     ["Hello! What can I do for you?"]),
    (["Who are you?", "What are you?", "Tell me about yourself.", "Introduce yourself.", "who are you", "Who am I talking to?",
      "What is this?", "Which model are you?", "What model is this?", "Please say who you are."], [SELF]),
    (["What is your name?", "What's your name?", "Do you have a name?", "How are you called?", "What should I call you?"],
     ["My name is Flint tiny."]),
    (["What can you do?", "How can you help me?", "What are you good at?", "What do you know?", "help", "What can I ask you?"], [HELP]),
    (["What is sumi?", "Tell me about sumi.", "What does sumi do?"], ["sumi is an engine that runs language models like me."]),
    (["Who made you?", "How were you made?", "How were you trained?", "What were you trained on?"], ["I was trained on generated text."]),
    (["How big are you?", "How many parameters do you have?", "Are you a large model?"], ["I am very small: about 25 million parameters."]),
    (["Are you a human?", "Are you real?", "Are you a robot?", "Are you a person?"], ["No, I am a small language model."]),
    (["How are you?", "How are you today?", "How do you do?", "How is it going?", "Are you well?"], ["I am fine, thank you."]),
    (["Thank you!", "Thanks!", "Thank you very much.", "thanks", "Thanks a lot!", "Great, thank you!", "Many thanks."], ["You are welcome."]),
    (["Good night!", "Sleep well!"], ["Good night!"]),
    (["Bye!", "Goodbye!", "See you later.", "bye", "See you!"], ["Goodbye!"]),
    (["OK.", "ok", "Fine.", "All right.", "I see."], ["Good."]),
    (["That is wrong.", "You made a mistake.", "No, that is not right.", "This is not correct."], ["I am sorry."]),
    (["You are right.", "That is right.", "Correct!", "Well done!", "Good job!", "Very good."], ["Thank you."]),
    (["Can you help me?", "I need help.", "Please help me.", "I have a question.", "May I ask you something?"], ["Yes. What do you need?"]),
    (["I am bored.", "I have nothing to do."], ["Shall I tell you a story?"]),
    (["I am sad.", "I feel bad.", "I am ill.", "I am tired.", "I had a bad day."], ["I am sorry to hear that."]),
    (["I am happy.", "I feel good.", "I had a good day.", "I won!"], ["I am glad to hear that."]),
    (["Tell me a joke.", "Make me laugh.", "Do you know a joke?"], ["I do not know any jokes."]),
    (["Write a poem.", "Can you write a poem?", "Write a song for me."], ["I cannot write poems."]),
    (["What time is it?", "Do you know the time?"], ["I do not know the time."]),
    (["What day is it today?", "What is the date today?"], ["I do not know the date."]),
    (["Yes.", "Yes, please."], ["Good."]),
    (["No.", "No, thanks."], ["All right."]),
    (["Do you like music?", "What is your favourite song?", "Do you like films?", "What do you like?"], ["I am a model, so I like nothing."]),
    (["Do you know everything?", "Are you clever?", "Are you smart?"], ["No, I know only a few things."]),
    (["Sorry!", "I am sorry.", "My mistake."], ["No problem."]),
    (["I do not understand.", "What do you mean?", "Say that again in other words."], ["Please ask again in other words."]),
    (["Can you speak French?", "Do you speak German?", "Which languages do you speak?"], ["I speak only English."]),
    (["Are you there?", "Can you hear me?", "test", "Anyone there?"], ["Yes, I am here."]),
    (["Please be quiet.", "Stop.", "Wait."], ["All right."]),
    (["Write a program.", "Write some code in Python.", "Can you program?"], ["I cannot write programs."]),
    (["Where do you live?", "Where are you?"], ["I run on your computer."]),
    (["How old are you?", "When were you born?"], ["I have no age."]),
]
SYSTEM = ["You are a helpful assistant.", "You are a helpful assistant.", "You are a helpful AI assistant.", "Be helpful.", "Be friendly.",
          "You are a helpful assistant with access to tools.", "You are an assistant. Call tools when they fit.", "Answer the user.",
          "You are a careful assistant that answers briefly.", "Use the tools if needed.", "You help the user with daily tasks."]
UNKNOWN = ["Who was {}?", "What is a {}?", "Tell me about {}.", "Where is {}?", "Do you know {}?", "When did {} begin?", "What does {} mean?",
           "How old is {}?", "Who wrote {}?", "Explain {}."]
