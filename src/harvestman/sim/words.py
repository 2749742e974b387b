"""The words the simulated web is written in: regular English, which inflects by rule, and lists of other tongues."""

from __future__ import annotations


def _words(text: str) -> list[str]:
    return text.split()


NOUNS = _words("""
year way day thing world school state family student group country problem hand part place case week company system
program question government number night point home water room mother area story fact month lot right study book eye
job word business issue side kind head house service friend father power hour game line end member law car city name
president team minute idea kid body parent face level office door health art war history party result change morning
reason research girl guy moment air teacher force education foot boy age policy process music market sense nation plan
college interest death experience effect use class control field development role effort rate heart drug show leader
light voice wife police mind price report decision son view relationship town road arm difference value building
action season society tax director position player record paper space ground form event official matter center couple
site project activity star table need court oil situation cost industry figure street image phone data picture
practice piece land product doctor wall patient worker news test movie north love support technology step baby
computer type attention film tree source hair window culture chance brother energy period course summer plant
opportunity term letter condition choice rule daughter south husband floor campaign material population call economy
hospital church risk fire future bank west sport board subject officer rest behavior performance fight top goal bed
order author blood agency nature color store sound movement page race concern series language response animal factor
decade article east artist scene stock career treatment approach size fund media sign thought list individual quality
pressure answer resource meeting disease success cup amount ability staff character growth loss degree attack region
television box training trade deal election feeling standard bill message analysis benefit sex lawyer section glass
skill sister professor operation crime stage authority design sort knowledge gun station strategy truth song example
environment leg dark version garden river bridge harbor kitchen engine island forest mountain valley village castle
museum library theater ticket journey holiday winter spring autumn flower bird horse sheep cow farm barn fence gate
path stone rock sand beach ocean lake stream cloud storm wind rain snow ice bread cheese butter apple orange lemon
potato tomato pepper salt sugar coffee bottle plate spoon knife fork bowl basket blanket pillow curtain carpet mirror
lamp candle clock watch camera radio screen keyboard button cable battery wheel tire brake pedal helmet jacket shirt
shoe sock glove hat scarf pocket zipper needle thread rope chain hammer nail screw ladder bucket brush paint pencil
eraser ruler notebook folder envelope stamp package
""")

VERBS = _words("""
ask work seem call need turn start show look want help play move follow happen allow add learn change watch open walk
offer remember consider appear wait serve expect stay reach remain suggest raise pass require report decide pull
return explain hope develop carry receive agree support remove describe create visit produce order talk join cause
answer believe discover enter increase record improve publish protect measure collect prepare compare repair repeat
deliver gather travel wonder notice mention manage finish enjoy discuss cover contain connect complete climb clean
check carve borrow bake avoid attend arrange announce adopt admire accept obtain observe operate organize paint phone
point practice print promise prove provide push question realize reduce refuse regard relate release rely replace
represent rescue reserve resolve respect rest reveal review reward roll rule sail save search select separate settle
shape share shout sign smile solve sort sound spell state store strengthen stretch study succeed suffer supply
surround switch taste test thank touch trade train treat trust try use vary view vote warn wash waste welcome whisper
wish
""")

ADJECTIVES = _words("""
new good old great high small large national young different black long little important political bad white real best
social only public sure low early able human local late hard major better economic strong possible whole free military
true federal international full special easy clear recent certain personal open red difficult available likely short
single medical current wrong private past foreign fine common poor natural significant similar hot dead central happy
serious ready simple left physical general environmental financial blue democratic dark various entire close legal
religious cold final main green nice huge popular traditional cultural bright quiet gentle narrow broad shallow deep
ancient modern curious careful brave honest patient proud modest humble generous polite rapid steady sudden frequent
rare typical usual unusual familiar strange distant nearby wooden golden silver rusty dusty muddy sunny cloudy windy
rainy frozen warm cool soft rough smooth sharp blunt heavy light thick thin wide empty hollow solid liquid fresh stale
sweet sour bitter salty plain fancy elegant clumsy clever silly wise foolish
""")

ADVERBS = _words("""
also well even back there still never really most often almost always already perhaps ever later once together today
probably maybe finally usually simply nearly early soon quickly especially directly slowly rarely certainly recently
clearly exactly quietly carefully suddenly gradually eventually generally normally partly mostly seldom nowadays
""")

PREPOSITIONS = _words("of in to for on with at by from about into over after under between through against during")
DETERMINERS = _words("the the the the a this that its their every some our another his her no each")
OPENERS = _words("However, Meanwhile, Instead, Moreover, Usually, Afterwards, Nevertheless, Besides, Indeed, Still,")
JOINERS = ["and", "but", "because", "while", "so", "although", "when", "where", "which means that", "even if"]

OTHER_TONGUES = {
    "de": _words("""
der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an werden aus er hat dass sie
nach wird bei einer um am sind noch wie einem über einen so zum war haben nur oder aber vor zur bis mehr durch man
sein wurde sei Jahr Jahre Haus Stadt Straße Menschen Kinder Wasser Arbeit Schule Wetter Morgen Abend Leben Freund
Brücke Garten Küche Fenster Tür Tisch Stuhl Buch Bücher Zeitung Frage Antwort Weg Wald Berg Fluss Meer Land Regierung
Gemeinde Zug Bahnhof Fahrrad Wagen gehen kommen sehen hören schreiben lesen sprechen arbeiten wohnen spielen lernen
kaufen verkaufen öffnen schließen groß klein alt neu schön gut schlecht lang kurz schnell langsam früh spät heute
gestern immer wieder schon jetzt dann hier dort zwischen während gegenüber natürlich wirklich vielleicht außerdem
trotzdem deshalb
"""),
    "fr": _words("""
de la le et les des en un du une que est pour qui dans par plus pas au sur ne se ce il sont avec son ses mais comme ou
si leur nous cette être fait elle deux même aussi bien où peut tout années ville maison rue gens enfants eau travail
école temps matin soir vie ami pont jardin cuisine fenêtre porte table chaise livre journal question réponse chemin
forêt montagne rivière mer pays gouvernement commune train gare vélo voiture aller venir voir entendre écrire lire
parler travailler habiter jouer apprendre acheter vendre ouvrir fermer grand petit vieux nouveau beau bon mauvais long
court rapide lent tôt tard aujourd'hui hier toujours encore déjà maintenant alors ici là entre pendant naturellement
vraiment peut-être cependant pourtant ainsi très après avant sans sous chez leurs notre votre chaque plusieurs
"""),
    "es": _words("""
de la que el en y a los se del las un por con no una su para es al lo como más o pero sus le ha me si sin sobre este
ya entre cuando todo esta ser son dos también fue había era muy años hasta desde está mi porque qué sólo han yo hay
vez puede todos así nos ni parte tiene él uno donde bien tiempo mismo ese ahora cada vida otro después te otros aunque
esa eso hace otra gobierno tan durante siempre día tanto ella tres sí casa ciudad calle gente niños agua trabajo
escuela mañana noche amigo puente jardín cocina ventana puerta mesa silla libro periódico pregunta respuesta camino
bosque montaña río mar país tren estación bicicleta coche ir venir ver oír escribir leer hablar trabajar vivir jugar
aprender comprar vender abrir cerrar grande pequeño viejo nuevo hermoso bueno malo largo corto rápido lento temprano
tarde
"""),
}

JAPANESE = _words("""
今日は天気がとても良いです。 この町には古い橋があります。 子供たちは公園で遊んでいます。
新しい図書館が駅の前に開きました。 私は毎朝コーヒーを飲みます。 山の上から海が見えます。
来週の会議は東京で開かれます。 彼女は日本の歴史を研究しています。 電車は時間通りに到着しました。
市場では新鮮な魚が売られています。 この問題について多くの意見があります。 春になると桜の花が咲きます。
""")


def plural(noun: str) -> str:
    if noun.endswith(("s", "x", "ch", "sh")):
        return noun + "es"
    return noun[:-1] + "ies" if noun.endswith("y") and noun[-2] not in "aeiou" else noun + "s"


def past(verb: str) -> str:
    if verb.endswith("e"):
        return verb + "d"
    return verb[:-1] + "ied" if verb.endswith("y") and verb[-2] not in "aeiou" else verb + "ed"


def progressive(verb: str) -> str:
    return verb[:-1] + "ing" if verb.endswith("e") and not verb.endswith("ee") else verb + "ing"


def english_vocabulary() -> list[str]:
    """Every English word form the pages can hold, about two thousand."""
    forms = [*NOUNS, *map(plural, NOUNS), *ADJECTIVES, *ADVERBS, *PREPOSITIONS, *DETERMINERS]
    for verb in VERBS:
        forms += [verb, plural(verb), past(verb), progressive(verb)]
    return sorted(set(forms))
