"""The media type of a file that is made here, by the ending of its name. Pure."""

import mimetypes

from gateway.files import ANY_KIND

_TYPES = mimetypes.MimeTypes()  # of this module alone: what the machine's own tables say differs
for _kind, _ending in (
    ("text/markdown", ".md"),
    ("application/x-ndjson", ".jsonl"),
    ("application/vnd.apache.parquet", ".parquet"),
    ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", ".xlsx"),
    ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", ".docx"),
    ("application/vnd.openxmlformats-officedocument.presentationml.presentation", ".pptx"),
    ("image/webp", ".webp"),
):
    _TYPES.add_type(_kind, _ending)


def kind_of(name: str) -> str:
    kind, encoding = _TYPES.guess_type(name, strict=False)
    if encoding:
        return {"gzip": "application/gzip"}.get(encoding, ANY_KIND)
    return kind or ANY_KIND
