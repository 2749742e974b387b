"""The text of the pages as WARC conversion records: WET, as Common Crawl's readers know it.

One NAME.warc.wet.gz for each NAME.warc.gz, its records in the same order. A record's id follows from that of the raw
record, so writing a file again gives the same file but for its first record's date.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from hashlib import sha256 as hashed
from itertools import groupby
from pathlib import Path
from typing import Final

from harvestman.export.rows import Exported, appearing
from harvestman.model import Instant, Page
from harvestman.store.members import compressed
from harvestman.store.records import record, sha256, warc_date
from harvestman.stored import Files, Place, Stored, walk

_CODES: Final = (
    "aa aar ab abk ae ave af afr ak aka am amh an arg ar ara as asm av ava ay aym az aze ba bak be bel bg bul "
    "bi bis bm bam bn ben bo bod br bre bs bos ca cat ce che ch cha co cos cr cre cs ces cu chu cv chv cy cym "
    "da dan de deu dv div dz dzo ee ewe el ell en eng eo epo es spa et est eu eus fa fas ff ful fi fin fj fij "
    "fo fao fr fra fy fry ga gle gd gla gl glg gn grn gu guj gv glv ha hau he heb hi hin ho hmo hr hrv ht hat "
    "hu hun hy hye hz her ia ina id ind ie ile ig ibo ii iii ik ipk io ido is isl it ita iu iku ja jpn jv jav "
    "ka kat kg kon ki kik kj kua kk kaz kl kal km khm kn kan ko kor kr kau ks kas ku kur kv kom kw cor ky kir "
    "la lat lb ltz lg lug li lim ln lin lo lao lt lit lu lub lv lav mg mlg mh mah mi mri mk mkd ml mal mn mon "
    "mr mar ms msa mt mlt my mya na nau nb nob nd nde ne nep ng ndo nl nld nn nno no nor nr nbl nv nav ny nya "
    "oc oci oj oji om orm or ori os oss pa pan pi pli pl pol ps pus pt por qu que rm roh rn run ro ron ru rus "
    "rw kin sa san sc srd sd snd se sme sg sag sh hbs si sin sk slk sl slv sm smo sn sna so som sq sqi sr srp "
    "ss ssw st sot su sun sv swe sw swa ta tam te tel tg tgk th tha ti tir tk tuk tl tgl tn tsn to ton tr tur "
    "ts tso tt tat tw twi ty tah ug uig uk ukr ur urd uz uzb ve ven vi vie vo vol wa wln wo wol xh xho yi yid "
    "yo yor za zha zh zho zu zul"
)
LANGUAGES: Final = dict(zip(_CODES.split()[::2], _CODES.split()[1::2], strict=True))
"""ISO 639-3, which WET has, by ISO 639-1, which we have. A code of three letters is one already."""

Tell = Callable[[int], None]


def write_wet(
    found: list[Files], target: Path, counted: Exported, *, software: str, now: Instant, noindex: bool, tell: Tell
) -> int:
    """Write the files into a directory that exists; returns how many. Each appears when it is whole.

    Pages without text have no record; those that ask not to be indexed only with `noindex`.
    """
    if not target.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(target))
    written = 0
    for files in found:
        for name, group in groupby(_named(files), key=lambda pair: pair[0]):
            with appearing(target / name) as part, part.open("wb") as out:
                out.write(compressed(_info(name, software, now)))
                for _, stored in group:
                    block = _chosen(stored, counted, noindex)
                    if block:
                        out.write(compressed(block))
                        if counted.rows % 1000 == 0:
                            tell(counted.rows)
            written += 1
    return written


def _named(files: Files) -> Iterator[tuple[str, Stored]]:
    """Everything stored, with the name of the file it goes to: a page without a record goes where the last one went."""
    name = f"{files.name.replace('/', '-')}-pages.warc.wet.gz"
    for stored in walk(files, Place()):
        if stored.ref is not None:
            name = stored.ref.file.removesuffix(".gz") + ".wet.gz"
        yield name, stored


def _chosen(stored: Stored, counted: Exported, noindex: bool) -> bytes:
    page = stored.page
    if page is None or not page.text:
        return b""
    if page.noindex and not noindex:
        counted.noindex += 1
        return b""
    counted.rows += 1
    return _conversion(page, stored.fields.get("warc-record-id", ""))


def _conversion(page: Page, origin: str) -> bytes:
    block = page.text.encode("utf-8", "replace")
    fields = [
        ("WARC-Type", "conversion"),
        ("WARC-Target-URI", page.url),
        ("WARC-Date", warc_date(page.fetched_at)),
        ("WARC-Record-ID", _identity(f"text {origin or page.url} {page.fetched_at}")),
        ("WARC-Block-Digest", sha256(block)),
    ]
    if origin:
        fields.insert(4, ("WARC-Refers-To", origin))
    if page.language:
        fields.append(("WARC-Identified-Content-Language", LANGUAGES.get(page.language, page.language)))
    return record([*fields, ("Content-Type", "text/plain")], block)


def _info(name: str, software: str, now: Instant) -> bytes:
    fields = (
        ("WARC-Type", "warcinfo"),
        ("WARC-Date", warc_date(now)),
        ("WARC-Filename", name),
        ("WARC-Record-ID", _identity(f"info {name}")),
        ("Content-Type", "application/warc-fields"),
    )
    words = f"software: {software}\r\nformat: WARC File Format 1.1\r\ndescription: main text of the pages\r\n"
    return record(fields, words.encode())


def _identity(text: str) -> str:
    """A UUID of version 8, the one for ids that are made of something else."""
    x = hashed(text.encode("utf-8", "replace")).hexdigest()
    return f"<urn:uuid:{x[:8]}-{x[8:12]}-8{x[13:16]}-8{x[17:20]}-{x[20:32]}>"
