"""Small real text: Python's own help pages, and what is made of them for the clients' scripts."""

import collections
import json
import pathlib
import re
from pydoc_data import topics

from .runs import python, run

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def documents(count: int = 12) -> list[list[str]]:
    """Help pages as lists of sentences of plain words."""
    found = []
    for name in sorted(topics.topics):
        sentences = []
        for sentence in re.split(r"(?<=[.:])\s+", topics.topics[name]):
            words = re.findall(r"[a-z]+", sentence.lower())
            if 5 <= len(words) <= 30:
                sentences.append(" ".join(words) + " .")
        if len(sentences) >= 8:
            found.append(sentences[:40])
    return found[:count]


def write_text(path: pathlib.Path) -> None:
    path.write_text("\n\n".join("\n".join(sentences) for sentences in documents()) + "\n")


def write_vocabulary(path: pathlib.Path, size: int = 400) -> None:
    """WordPiece vocabulary: the most frequent words, and letters for all others."""
    words = collections.Counter(
        word for sentences in documents() for s in sentences for word in s.split()
    )
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    pieces = [*SPECIAL, *letters, *(f"##{letter}" for letter in letters)]
    common = [word for word, _ in words.most_common(size) if word not in letters]
    path.write_text("\n".join([*pieces, *common]) + "\n")


def write_config(path: pathlib.Path, vocabulary: int, **other: object) -> None:
    """A model of two layers, without dropout so that its numbers can be compared."""
    config = {
        "attention_probs_dropout_prob": 0.0,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.0,
        "hidden_size": 32,
        "initializer_range": 0.02,
        "intermediate_size": 64,
        "max_position_embeddings": 128,
        "num_attention_heads": 2,
        "num_hidden_layers": 2,
        "type_vocab_size": 2,
        "vocab_size": vocabulary,
    }
    path.write_text(json.dumps({**config, **other}))


def pairs(count: int) -> list[tuple[str, str, int]]:
    """Two sentences, and 1 if they are of the same document and follow each other."""
    found = []
    pages = documents()
    for i in range(count):
        page, other = pages[i % len(pages)], pages[(i + 3) % len(pages)]
        at = i // len(pages) % (min(len(page), len(other)) - 1)
        same = i % 2
        found.append((page[at], page[at + 1] if same else other[at], same))
    return found


def write_mrpc(folder: pathlib.Path, train: int = 64, test: int = 20) -> None:
    header = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"
    rows = [f"{label}\t1\t2\t{a}\t{b}" for a, b, label in pairs(train + test)]
    for name, part in (("train", rows[:train]), ("dev", rows[train:]), ("test", rows[train:])):
        (folder / f"{name}.tsv").write_text("\n".join([header, *part]) + "\n")


def write_squad(path: pathlib.Path, count: int = 16) -> None:
    """Questions whose answers are a word of a paragraph, in the form of SQuAD 1.1."""
    paragraphs = []
    for i, sentences in enumerate(documents(count)):
        context = " ".join(sentences[:4])
        answer = sentences[1].split()[2]
        paragraphs.append(
            {
                "context": context,
                "qas": [
                    {
                        "id": str(i),
                        "question": " ".join(sentences[1].split()[:5]),
                        "answers": [{"text": answer, "answer_start": context.index(answer)}],
                    }
                ],
            }
        )
    path.write_text(json.dumps({"version": "1.1", "data": [{"paragraphs": paragraphs}]}))


def write_sentencepiece(clients: pathlib.Path, folder: pathlib.Path, size: int = 600) -> None:
    """Trains `pieces.model` and `pieces.vocab` on `text.txt`, with the pieces BERT needs."""
    options = (
        f"--input=text.txt --model_prefix=pieces --vocab_size={size} --pad_id=0 --unk_id=1 "
        "--bos_id=-1 --eos_id=-1 "
        "--control_symbols=[CLS],[SEP],[MASK],<cls>,<sep>,<mask>,<eod>,<eop> "
        "--hard_vocab_limit=false"
    )
    program = f"import sentencepiece as s; s.SentencePieceTrainer.train({options!r})"
    python(clients, folder, "-c", program)


def write_pretraining(
    clients: pathlib.Path, folder: pathlib.Path, length: int, dupe_factor: int
) -> None:
    """Has BERT's own script make `pretraining.tfrecord` of `text.txt` and `vocab.txt`."""
    run(
        clients,
        "bert.create_pretraining_data",
        folder,
        input_file="text.txt",
        output_file="pretraining.tfrecord",
        vocab_file="vocab.txt",
        max_seq_length=length,
        max_predictions_per_seq=5,
        dupe_factor=dupe_factor,
        random_seed=1,
    )
