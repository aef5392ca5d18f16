"""What mail programs write above and below a person's words, in the languages that they speak. Pure."""

import re

LONGEST = 300  # characters of what a program says above a quote

_WORDS = r"^\*{0,2}(?:%s)\*{0,2}\s*[:：]\*{0,2}\s*\S"

# "On Tue, 6 Jan 2026 at 10:00, Ana <ana@example.org> wrote:"
WROTE = re.compile(
    r"^(on|am|le|el|il|em|op|den|dne|w dniu)\b.{4,250}\b"
    r"(wrote|schrieb|a écrit|escribió|ha scritto|escreveu|schreef|skrev|napsal\(?a?\)?|napisał\(?a?\)?)\b.{0,120}:$",
    re.IGNORECASE | re.DOTALL,
)
# And as any program says it in any language: two of who by their address, the day and the time, and a colon at the end.
_ADDRESS = re.compile(r"[<(\[](?:mailto:)?[^\s<>()\[\]]+@[^\s<>()\[\]]+[>)\]]")
_QUOTING = re.compile(r"(quoting|zitat von|citando|citat från|citát)\b", re.IGNORECASE)
_DAY = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)|(?<!\d)\d{1,2}[./-]\d{1,2}[./-]\d{2}(?!\d)")
_TIME = re.compile(r"(?<!\d)\d{1,2}[:.h]\d\d(?!\d)")
_ENDS = (":", "：")

ORIGINAL = re.compile(
    r"^\s*[-_]{2,}\s*(original message|ursprüngliche nachricht|original-nachricht|message d'origine|mensaje original|"
    r"mensagem original|messaggio originale|oorspronkelijk bericht|oprindelig meddelelse|opprinnelig melding|"
    r"ursprungligt meddelande|alkuperäinen viesti|wiadomość oryginalna|původní zpráva|eredeti üzenet|özgün ileti|"
    r"исходное сообщение|原始邮件|原始郵件|元のメッセージ|원본 메시지|원본 메일)\s*[-_]{2,}\s*$",
    re.IGNORECASE,
)
FORWARDED = re.compile(
    r"^\s*(-{2,}\s*(forwarded message|weitergeleitete nachricht|message transféré|mensaje reenviado|"
    r"mensagem encaminhada|messaggio inoltrato|doorgestuurd bericht|videresendt meddelelse|videresendt melding|"
    r"vidarebefordrat meddelande|välitetty viesti|wiadomość przekazana|přeposlaná zpráva|"
    r"пересылаемое сообщение|转发的邮件|转发邮件|轉寄郵件|转发邮件信息|転送されたメッセージ|전달된 메일)\s*-{2,}|"
    r"begin forwarded message:|anfang der weitergeleiteten nachricht:|début du message réexpédié\s*:|"
    r"inicio del mensaje reenviado:|inizio messaggio inoltrato:|início da mensagem reencaminhada:)\s*$",
    re.IGNORECASE,
)
PASSED_ON = re.compile(
    r"^\s*(fwd?|wg|tr|rv|rif|doorst|enc|vs|vb|vl|i|pd|ilt|转发|轉寄|転送|전달)\s*[:：]", re.IGNORECASE
)  # at the head of a subject

_FROM = (
    "from|von|de|da|van|från|fra|od|lähettäjä|от|від|kimden|gönderen|feladó|από|发件人|寄件者|寄件人|差出人|送信者|"
    "보낸 ?사람"
)
_NEXT = (
    "sent|date|to|cc|subject|gesendet|datum|an|kopie|betreff|envoyé|à|objet|enviad[oa](?: el| em)?|fecha|para|asunto|"
    "assunto|inviato|data|a|oggetto|verzonden|aan|onderwerp|skickat|till|ämne|sendt|dato|til|emne|wysłano|do|temat|"
    "odesláno|komu|předmět|lähetetty|vastaanottaja|aihe|отправлено|дата|кому|тема|надіслано|gönderilme|tarih|kime|konu|"
    "küldve|címzett|tárgy|στάλθηκε|προς|θέμα|发送时间|发送日期|日期|收件人|抄送|主题|寄件日期|收件者|主旨|送信日時|日時|"
    "宛先|件名|보낸 ?날짜|날짜|받는 ?사람|제목"
)
HEADER_LINE = re.compile(_WORDS % _FROM, re.IGNORECASE)
NEXT_HEADER_LINE = re.compile(_WORDS % _NEXT, re.IGNORECASE)

RULE = re.compile(r"^\s*[-_=*]{5,}\s*$")

# What telephones put below each mail, without a line of dashes: known by how it begins and what it names.
SENT_FROM = re.compile(
    r"^(sent (from|with|via|using)|gesendet (von|mit)|von mein\w+|envoyé (de|depuis|à partir de)|enviado (desde|do|de)|"
    r"inviato da|verzonden (vanaf|met|via)|(skickat )?från|sendt fra|wysłane z|odesláno z|poslano (z|s)|lähetetty|"
    r"отправлено (с|из)|надіслано з|get|holen sie sich|obtenir|obtener|télécharger|发自|發自|傳送自)(?:\b|(?=\w))"
    r"(?=.*(iphone|ipad|outlook|android|galaxy|samsung|huawei|xiaomi|blackberry|gmail|yahoo|gmx|web\.de|proton ?mail|"
    r"windows|smartphone|handy|mobile|phone|tablet)).{2,100}$|"
    r"^(iphone|ipad|android|galaxy|outlook).{0,20}(から送信|에서 보냄)\.?$",
    re.IGNORECASE,
)


def is_attribution(text: str) -> bool:
    """Over quoted lines."""
    if not (text.endswith(_ENDS) and len(text) <= LONGEST):
        return False
    said = [bool(_ADDRESS.search(text)), bool(_DAY.search(text) or _QUOTING.match(text)), bool(_TIME.search(text))]
    return bool(WROTE.match(text)) or sum(said) >= 2


def stands_alone(text: str) -> bool:
    """Over lines that nothing marks as quoted: nobody writes all of this by hand."""
    short = text.endswith(_ENDS) and len(text) <= LONGEST
    return short and all(one.search(text) for one in (_ADDRESS, _DAY, _TIME))


def is_title(line: str) -> bool:
    """`---- On Tue, 6 Jan 2026 10:00 Ana <ana@example.org> wrote ----`"""
    return len(line) <= LONGEST and line.startswith("---") and line.endswith("---") and bool(_ADDRESS.search(line))
