"""Make the demo's data: sentence pairs in Bokmål and Nynorsk, and a tokenizer for them.

Writes train.jsonl, heldout.jsonl and the tokenizer's files to the folder $WORK. No held-out
sentence is among the training sentences. The same seed gives the same bytes.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SEED = 20
TRAIN, HELD_OUT = 4096, 200
PAD, END, USER, ASSISTANT = "<|pad|>", "<|end|>", "<|user|>", "<|assistant|>"
CHAT = (
    "{% for message in messages %}"
    "{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)

# One place in the sentence after the other: "bokmål/nynorsk", a single form serves both, _ is a space.
SLOTS = [
    (
        "jeg/eg du han hun/ho vi dere/de læreren/læraren jenta gutten/guten bonden fiskeren/fiskaren "
        "kvinnen/kvinna barnet naboen søsteren_min/systera_mi broren_min/broren_min legen mannen"
    ),
    (
        "ser kjøper/kjøper spiser/et leser/les skriver_om/skriv_om selger/sel finner/finn bærer/ber "
        "henter/hentar kaster/kastar elsker/elskar maler/målar vasker/vaskar trenger/treng "
        "gjemmer/gøymer mister/mistar vet_om/veit_om snakker_om/snakkar_om"
    ),
    ("ikke/ikkje alltid aldri ofte gjerne noen_ganger/nokre_gonger bare/berre"),
    (
        "boken/boka en_hest/ein_hest et_hus/eit_hus melken/mjølka brødet noen_epler/nokre_eple brevet "
        "fisken båten kaken/kaka sykkelen nøkkelen veien/vegen steinen mange_fugler/mange_fuglar "
        "klærne/kleda en_gammel_klokke/ei_gammal_klokke kjærligheten/kjærleiken"
    ),
    (
        "i_dag hjemme/heime på_skolen/på_skulen i_byen hver_dag/kvar_dag om_kvelden ved_sjøen "
        "uten_penger/utan_pengar sammen_med_vennene/saman_med_venene nå/no i_morgen/i_morgon "
        "fra_morgen_til_kveld/frå_morgon_til_kveld hvert_år/kvart_år"
    ),
]


def pairs(count: int, seed: int) -> list[dict[str, str]]:
    """`count` different pairs of sentences in a random order."""
    slots = [[word.replace("_", " ").split("/") for word in slot.split()] for slot in SLOTS]
    chance = random.Random(seed)  # noqa: S311  (the same sentences every time, no secrets)
    translations: dict[str, str] = {}
    while len(translations) < count:
        words = [chance.choice(slot) for slot in slots]
        translations.setdefault(_sentence(word[0] for word in words), _sentence(word[-1] for word in words))
    return [{"nb": bokmaal, "nn": nynorsk} for bokmaal, nynorsk in translations.items()]


def _sentence(words: Iterable[str]) -> str:
    text = " ".join(words)
    return text[0].upper() + text[1:] + "."


def train_tokenizer(texts: list[str]) -> Any:
    """A byte-pair encoding learnt from these texts."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="never")
    tokenizer.train_from_iterator(
        texts,
        trainers.BpeTrainer(vocab_size=384, special_tokens=[PAD, END, USER, ASSISTANT], show_progress=False),
    )
    return tokenizer


def main() -> None:
    """Write the demo's data set and tokenizer below $WORK."""
    work = Path(os.environ["WORK"])
    work.mkdir(parents=True, exist_ok=True)
    rows = pairs(TRAIN + HELD_OUT, SEED)
    for name, part in (("train", rows[HELD_OUT:]), ("heldout", rows[:HELD_OUT])):
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in part]
        (work / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    tokenizer = train_tokenizer([text for row in rows[HELD_OUT:] for text in row.values()])
    tokenizer.save(str(work / "tokenizer.json"))
    tokenizer_config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": END,
        "pad_token": PAD,
        "chat_template": CHAT,
        "clean_up_tokenization_spaces": False,
    }
    (work / "tokenizer_config.json").write_text(
        json.dumps(tokenizer_config, indent=2) + "\n", encoding="utf-8"
    )
    print(f"{TRAIN:,} sentences to learn from, {HELD_OUT} held out")


if __name__ == "__main__":
    main()
