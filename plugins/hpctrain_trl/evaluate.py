"""Answers generated for the evaluation data, greedily, and how many are right."""

from __future__ import annotations

from typing import Any

from hpctrain_trl.environment import Ranks
from hpctrain_trl.errors import BadConfig
from hpctrain_trl.settings import Settings


def check(settings: Settings, rows: Any) -> None:
    """Refuse before training what could not be judged after it."""
    if not settings.generate_eval:
        return
    if "completion" not in rows.column_names:
        raise BadConfig("generate", "generate_eval needs a prompt and an answer in every row")
    if settings.zero_stage == 3:
        raise BadConfig("generate", "answers cannot be generated under ZeRO-3", "zero_stage = 2")


def measure(model: Any, tokenizer: Any, rows: Any, settings: Settings, ranks: Ranks) -> dict[str, float]:
    """`exact` (a share of 1), `of` (rows), and `bleu` and `chrf` where they are asked for."""
    rows = rows.select(range(min(len(rows), settings.generate_rows)))
    references = [_text(row["completion"]).strip() for row in rows]
    indexes = range(ranks.rank, len(rows), ranks.world)
    texts = _answers(model, tokenizer, rows.select(indexes), settings)
    answers = _gathered(dict(zip(indexes, texts, strict=True)), ranks)
    outputs = [answers[i] for i in range(len(rows))]
    right = sum(a == b for a, b in zip(outputs, references, strict=True))
    return {"exact": right / len(rows), "of": len(rows), **_scores(outputs, references, settings)}


def _answers(model: Any, tokenizer: Any, rows: Any, settings: Settings) -> list[str]:
    import torch

    size = settings.per_device_eval_batch_size
    prompts = [_prompt(tokenizer, row["prompt"]) for row in rows]
    answers: list[str] = []
    was_training, side = model.training, tokenizer.padding_side
    model.eval()
    tokenizer.padding_side = "left"
    try:
        for start in range(0, len(prompts), size):
            batch = tokenizer(
                prompts[start : start + size],
                return_tensors="pt",
                padding=True,
                add_special_tokens=False,
                return_token_type_ids=False,
            ).to(model.device)
            with torch.inference_mode():
                out = model.generate(**batch, **_greedy(tokenizer, rows, start, size, settings))
            texts = tokenizer.batch_decode(out[:, batch["input_ids"].shape[1] :], skip_special_tokens=True)
            answers += [text.strip() for text in texts]
    finally:
        tokenizer.padding_side = side
        model.train(was_training)
    return answers


def _greedy(tokenizer: Any, rows: Any, start: int, size: int, settings: Settings) -> dict[str, Any]:
    """No longer than half as long again as the longest right answer of the batch."""
    texts = [_text(rows[i]["completion"]) for i in range(start, min(start + size, len(rows)))]
    longest = max(len(ids) for ids in tokenizer(texts, add_special_tokens=False)["input_ids"])
    return {
        "do_sample": False,
        "use_cache": True,
        "max_new_tokens": min(settings.max_length, longest * 3 // 2 + 4),
        "pad_token_id": tokenizer.pad_token_id,
        "eos_token_id": tokenizer.eos_token_id,
    }


def _prompt(tokenizer: Any, prompt: Any) -> str:
    if isinstance(prompt, str):
        return prompt
    text: str = tokenizer.apply_chat_template(prompt, tokenize=False, add_generation_prompt=True)
    return text


def _text(completion: Any) -> str:
    return completion if isinstance(completion, str) else str(completion[-1]["content"])


def _gathered(local_answers: dict[int, str], ranks: Ranks) -> dict[int, str]:
    if ranks.world == 1:
        return local_answers
    from torch import distributed

    parts: list[Any] = [None] * ranks.world
    distributed.all_gather_object(parts, local_answers)
    return {i: text for part in parts for i, text in part.items()}


def _scores(outputs: list[str], references: list[str], settings: Settings) -> dict[str, float]:
    if settings.generate_eval != "sacrebleu":
        return {}
    import sacrebleu

    return {
        "bleu": sacrebleu.corpus_bleu(outputs, [references]).score,
        "chrf": sacrebleu.corpus_chrf(outputs, [references]).score,
    }
