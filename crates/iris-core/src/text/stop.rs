//! Words that say nothing about what a text is about, by language, and which language a text seems to be in.

use std::sync::LazyLock;

use super::words::{Word, key};

/// Languages whose function words are known, one bit each.
const ENGLISH: u16 = 1;
const GERMAN: u16 = 1 << 1;
const FRENCH: u16 = 1 << 2;
const SPANISH: u16 = 1 << 3;
const ITALIAN: u16 = 1 << 4;
const PORTUGUESE: u16 = 1 << 5;
const DUTCH: u16 = 1 << 6;
const RUSSIAN: u16 = 1 << 7;
/// Not a function word of any language, but no subject either: what is asked for and how.
const ASKING: u16 = 1 << 8;

/// Function words, without accents as the folded text shows them.
const WORDS: &[(u16, &str)] = &[
    (
        ENGLISH,
        "a about above across after again against all almost along already also although always am among an and another \
         any anybody anyone anything are aren't around as at away back be became because become been before behind being \
         below beside between beyond both but by can can't cannot could couldn't did didn't do does doesn't doing don't \
         done down during each either else enough etc even ever every everybody everyone everything except few for from \
         further furthermore had hadn't has hasn't have haven't having he he's hence her here hers herself him himself \
         his how however i i'd i'll i'm i've if in indeed instead into is isn't it it's its itself just last least less \
         lot lots many may maybe me might mine more moreover most much must my myself near nearly neither never \
         nevertheless no nobody none nor not nothing now of off often on once only onto or other others otherwise our \
         ours ourselves out over own per perhaps quite rather really same several shall she she's should shouldn't since \
         so some somebody someone something sometimes somewhat still such than that that's the their theirs them \
         themselves then there there's therefore these they they're this those though through throughout thus till to \
         together too toward towards under unless until up upon us very via was wasn't we we're well were weren't what \
         what's whatever when whenever where whereas wherever whether which whichever while who who's whoever whole whom \
         whose why will with within without won't would wouldn't yes yet you you'd you'll you're you've your yours \
         yourself yourselves",
    ),
    (
        ASKING,
        "able aim answer answers answered answering appropriate article ask asked asking asks assist assistance bad based \
         basic best better brief briefly brainstorm bring brings bullet bullets came certain change classify come comes coming \
         command common compose composed construct content correct create created creates creating creative current \
         day define definition describe described describes describing description design detail detailed details \
         determine develop different draft edit essay example examples explain explained explaining explains \
         explanation false fact facts fill find finding finds five follow following follows form format formulate found \
         four gave general generate generated generating get gets getting give given gives giving go goes going \
         good got great guess happen help helped helpful helping helps http https idea ideas identify imagine \
         important include included includes including input instruction instructions interesting issue item items keep \
         keeping keeps kept kind know known knows let letter line lines list listed listing lists little \
         long look looked looking looks made main major make makes making mean meaning means mention message \
         minimum maximum name names need needed needs new note number numbers offer one ones org original output outline \
         overview paragraph paragraphs part particular people person phrase piece place please plus poem point points \
         possible prepare present produce properly provide provided provides providing purpose put puts question questions read \
         real reason reasons record regarding related relevant reply request respond response result rewrite right \
         said sample saw say saying says second see seem seems seen sentence sentences set short show showed showing \
         shown shows significance similar simple sir situation six small sort specific state statement statements step steps \
         story style suggest suggested suggestion suggestions suitable summarise summarize summary sure take taken takes \
         taking tell telling tells ten text thank thanks thing things think thinking third three time title \
         told topic topics tried tries true try trying turn tweet two type types understand unique use used useful \
         user uses using usually various want wanted wants way ways went wiki word words work works write writes \
         writing written wrong www com net yeah year first different kinds",
    ),
    (
        GERMAN,
        "aber als also am an auch auf aus bei bin bis bitte da dafur damit dann das dass dein deine dem den der des dich \
         die dies diese diesem diesen dieser dieses dir du durch ein eine einem einen einer eines er es euch fur gegen \
         gibt hab habe haben hat hatte hier ich ihm ihn ihnen ihr ihre im ins ist ja jede jeder kann kein keine konnen \
         machen mein meine mich mir mit muss nach nicht noch nur ob oder ohne sehr sein seine sich sie sind so soll \
         sollte uber um und uns unser unter vom von vor wann warum was wegen weil welche welcher welches wenn wer werde \
         werden wie wieder wir wird wo wurde zu zum zur zwischen",
    ),
    (
        FRENCH,
        "ai alors au aucun aussi autre aux avec avez avons bien ce cela ces cet cette chaque comme comment dans de des \
         deux donc dont du elle elles en est et etait etre eux fait faire il ils je la le les leur leurs lui ma mais me \
         meme mes moi mon ne nos notre nous on ont ou par pas peut plus pour pourquoi qu quand que quel quelle quelles \
         quels qui sa sans se ses si son sont sous sur ta te tes toi ton tous tout toute tres tu un une vos votre vous",
    ),
    (
        SPANISH,
        "al algo antes aqui asi aunque cada como con cual cuando de debe del desde donde dos el ella ellas ellos en entre \
         era eres es esa ese eso esta estaba estan estar este esto estos fue ha hace hacer han hasta hay la las le les lo \
         los mas me mi mis muy nada ni no nos nosotros o otra otro para pero por porque puede puedo que quien se sea ser \
         si sin sobre solo son su sus tambien te tiene tienen todo todos tu un una uno unos usted y ya yo",
    ),
    (
        ITALIAN,
        "ad agli ai al alla alle anche che chi ci come con cosa cui da dal dalla dei del della delle di dove e ecco ed \
         era essere fa fare fra gli ha hai hanno ho i il in io la le lei lo loro lui ma mi mia mio molto ne nel nella \
         nelle no noi non nostro o ogni per perche piu poi puo quale quando quanto quella quello questa questo qui se sei \
         sia sono su sua sue sul sulla suo tra tu tutti tutto un una uno vi voi",
    ),
    (
        PORTUGUESE,
        "ao aos as ate com como da das de dela dele depois do dos e ela elas ele eles em entre era essa esse esta estao \
         estar este eu foi for ha isso isto ja la lhe mais mas me meu minha muito na nao nas nem no nos nossa nosso num \
         numa o os ou para pela pelo por porque pode posso qual quando que quem se sem ser seu seus so sua suas tambem te \
         tem ter um uma voce voces",
    ),
    (
        DUTCH,
        "aan af al als altijd ben bij daar dan dat de deze die dit doe doen door dus een en er geen goed had heb hebben \
         heeft het hier hij hoe hun ik in is ja je jij kan kunnen maar me meer met mij mijn moet na naar niet nog nu of om \
         omdat onder ons ook op over te tot uit uw van veel voor waar waarom wanneer want was wat we wel welke werd wie wij \
         wil worden wordt zal ze zelf zich zij zijn zo zonder",
    ),
    (
        RUSSIAN,
        "а без более бы был была были было быть в вам вас ваш весь во вот все всего вы где да даже для до его ее если есть \
         еще же за и из или им их к как какой когда кто ли мне может можно мой мы на над надо нас не него нет ни но ну о об \
         он она они оно от очень по под при с сам свой себя со так также такой там то того тоже только ты у уже чего чем \
         что чтобы эта эти это этот я",
    ),
];

/// Slots of the table; a power of two well above the number of words.
const SLOTS: usize = 4096;

static TABLE: LazyLock<Vec<(u64, u16)>> = LazyLock::new(|| {
    let mut table = vec![(0, 0); SLOTS];
    for (language, words) in WORDS {
        for word in words.split_whitespace() {
            let hash = key(word.as_bytes());
            let mut slot = slot(hash);
            while let Some((there, mask)) = table.get_mut(slot) {
                if *there == hash || *there == 0 {
                    *there = hash;
                    *mask |= language;
                    break;
                }
                slot = (slot + 1) % SLOTS;
            }
        }
    }
    table
});

fn slot(hash: u64) -> usize {
    usize::try_from(hash >> 52).unwrap_or(0) % SLOTS
}

/// In which languages the word with this key is a function word.
fn languages(hash: u64) -> u16 {
    let mut slot = slot(hash);
    while let Some((there, mask)) = TABLE.get(slot) {
        if *there == hash {
            return *mask;
        }
        if *there == 0 {
            return 0;
        }
        slot = (slot + 1) % SLOTS;
    }
    0
}

/// Whether a word, lower-cased, says nothing about a subject.
pub(super) fn is_stop(word: &[u8]) -> bool {
    languages(key(word)) != 0
}

/// Words that tell the language of a text at most.
const LANGUAGE_WORDS_MAX: usize = 400;

/// The language a text seems to be in, as a number to compare; nothing when its words do not tell.
pub fn language<'a>(words: impl Iterator<Item = Word<'a>>) -> Option<u16> {
    let mut counts = [0_u32; 8];
    let mut lower = [0; super::words::WORD_BYTES_MAX];
    for word in words.take(LANGUAGE_WORDS_MAX) {
        let mask = languages(key(word.lower(&mut lower)));
        for (at, count) in counts.iter_mut().enumerate() {
            *count += u32::from(mask >> at & 1);
        }
    }
    let (at, best) = counts.iter().enumerate().max_by_key(|(at, count)| (**count, usize::MAX - at))?;
    let second = counts.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, count)| *count).max()?;
    (*best >= 2 && *best > second).then(|| 1 << at)
}
