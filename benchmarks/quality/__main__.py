"""How good recall is, stage by stage, on labelled questions.

    python -m benchmarks.quality                    the shipped set, in a memory made for it
    python -m benchmarks.quality --questions FILE   a labelled file, in the memory of $FUNES_HOME
    python -m benchmarks.quality --replies          what the memory of $FUNES_HOME was asked itself
    python -m benchmarks.quality --locomo FILE      dialogues shaped as LoCoMo's
    python -m benchmarks.quality --halves           the shipped set, half of its answers left out
    python -m benchmarks.quality --compare A B      two runs that --save has written

Prints hit@1/5/10, MRR, nDCG@10 and recall@10 with more and more stages, of the last stage by style
and kind, what an answer took, and how well its confidence tells questions that nothing answers.
`--settle` asks a labelled file or --replies with and without the cross-encoder that is installed in
$FUNES_HOME, and keeps what that changes, by which `rerank = "auto"` decides.
A labelled file has `query`, `gold` ({session_id, turn_uuid, quote}), `style` and `kind` a line.
"""

import argparse
import json
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from benchmarks.quality import locomo, runs
from benchmarks.quality.abstention import halves
from benchmarks.quality.intervals import differences, differences_table
from benchmarks.quality.measures import COLUMNS, Labelled, means, of_json
from benchmarks.quality.replies import replies
from benchmarks.quality.sample_memory import ASKED_AT_US, make_memory, model_dir
from benchmarks.quality.stages import STAGES, stages_of
from funes_ls.indexer.settings import Settings, load_settings
from funes_ls.memories import KeptOpen
from funes_ls.models import install_reranker, installed_rerankers
from funes_ls.reranking import Evaluation, keep_evaluation

SHIPPED = "shipped"
_MOST_REPLIES = 200
QUESTIONS = Path(__file__).parent / "questions.jsonl"

#: What the shipped set must reach, by stage; set a question or two below what is measured.
FLOORS: dict[str, dict[str, float]] = {
    "words": {"hit@1": 0.32, "hit@5": 0.58, "mrr": 0.44, "recall@10": 0.58},
    "fused": {"hit@1": 0.45, "hit@5": 0.73, "mrr": 0.58, "recall@10": 0.75},
    "shipped": {"hit@1": 0.45, "hit@5": 0.73, "mrr": 0.58, "recall@10": 0.75},
}


def main() -> None:
    """Measure, print, and fail with `--check` below the floor."""
    args = _arguments()
    if args.compare:
        _compare(*args.compare)
        return
    with ExitStack() as stack:
        found, questions = _measured(args, stack)
    print(runs.report(found, questions))
    if args.settle:
        print(_settle(found))
    if args.save:
        runs.save(found, args.save)
    missed = below_floor(found) if found.about == SHIPPED else []
    print(*(f"MISSED: {line}" for line in missed), sep="\n")
    if args.check and missed:
        sys.exit(1)


def load_questions(path: Path = QUESTIONS) -> list[Labelled]:
    """Return the questions of a labelled file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [of_json(json.loads(line), number) for number, line in enumerate(lines) if line.strip()]


def below_floor(found: runs.Run) -> list[str]:
    """Return a line for every figure of the shipped set that is not what it must be."""
    missed = []
    for stage, limits in FLOORS.items():
        if stage in found.stages:
            mean = means(list(found.stages[stage].scores.values()))
            missed += [
                f"{stage}: {name} is {mean[name]:.3f}, not {least:.3f} or more"
                for name, least in limits.items()
                if mean[name] < least
            ]
    return missed


def _measured(args: argparse.Namespace, stack: ExitStack) -> tuple[runs.Run, list[Labelled]]:
    names = ("shipped", "cross") if args.settle else args.stages.split(",") if args.stages else ()
    stages = stages_of(names)
    if args.questions or args.replies:
        rerank = "late" if args.settle else args.rerank
        settings, _ = load_settings(os.environ, overrides={"rerank": rerank})
        own = KeptOpen(settings)
        memories = {"": own}
        if args.questions:
            questions, about = load_questions(args.questions), args.questions.name
        else:
            with own.reading("local", whole=True) as memory:
                questions, about = replies(memory, most=args.limit or _MOST_REPLIES), "replies"
        at_us = None
    else:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="funes-quality-")))
        model = args.model or model_dir(Path.home() / ".cache" / "funes-tests" / "models")
        if model is None:
            sys.exit("No MiniLM here: name a model's directory with --model.")
        if args.halves:
            homes, questions = halves(load_questions(), folder, model)
            memories = {name: KeptOpen(settings) for name, settings in homes.items()}
            about, at_us = "halves", ASKED_AT_US
        elif args.locomo:
            samples = locomo.load(args.locomo)[: args.limit]
            names = [str(sample.get("sample_id", number)) for number, sample in enumerate(samples)]
            memories = {
                name: KeptOpen(locomo.make_memory(sample, folder / str(number), model))
                for number, (name, sample) in enumerate(zip(names, samples, strict=True))
            }
            questions = [
                question
                for name, sample in zip(names, samples, strict=True)
                for question in locomo.questions_of(sample, name)
            ]
            about, at_us = args.locomo.name, None
        else:
            rerank = args.rerank or Settings.rerank
            settings = make_memory(folder, model=model, rerank=rerank)
            if args.cross_encoder:
                given = str(args.cross_encoder)
                install_reranker("", source=given, models_dir=settings.models_dir)
            memories = {"": KeptOpen(settings)}
            questions, about, at_us = load_questions(), SHIPPED, ASKED_AT_US
    for memory in memories.values():
        stack.callback(memory.close)
    return runs.run(about, questions, memories, stages, at_us=at_us), questions


def _settle(found: runs.Run) -> str:
    """Keep what the cross-encoder changes, and say so."""
    settings, _ = load_settings(os.environ)
    there = installed_rerankers(settings.models_dir)
    if not there:
        sys.exit(f"No cross-encoder in {settings.models_dir}: see `funes model install`.")
    with KeptOpen(settings).reading("local", whole=True) as memory:
        stamp = memory.dataset.stamp if memory.dataset is not None else ""
    before, after = found.stages["shipped"].scores, found.stages["cross"].scores
    changed = differences(before, after, COLUMNS)
    mrr = next(one for one in changed if one.measure == "mrr")
    kept = Evaluation(
        stamp=stamp,
        reranker=there[0].name,
        graph_sha256=there[0].graph_sha256,
        questions=mrr.n,
        gain=round(mrr.after - mrr.before, 4),
        low=round(mrr.low, 4),
    )
    keep_evaluation(settings.home, kept)
    reads = f"`auto` {'reads with' if kept.helps else 'does without'} {kept.reranker}."
    return f"\n{differences_table(changed)}\n\n{reads}"


def _compare(before: Path, after: Path) -> None:
    old, new = (list(runs.load(path).stages.items())[-1] for path in (before, after))
    print(f"{before.name}, {old[0]}, against {after.name}, {new[0]}:\n")
    print(differences_table(differences(old[1].scores, new[1].scores, COLUMNS)))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.quality",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--questions", type=Path, help="a labelled file about $FUNES_HOME's memory")
    what.add_argument(
        "--replies", action="store_true", help="what was asked in $FUNES_HOME's memory itself"
    )
    what.add_argument("--locomo", type=Path, help="a file shaped as LoCoMo's")
    what.add_argument(
        "--halves", action="store_true", help="memories that lack half of the projects"
    )
    what.add_argument("--compare", type=Path, nargs=2, metavar=("BEFORE", "AFTER"))
    parser.add_argument("--stages", help=f"some of: {', '.join(STAGES)}".replace(", ", ","))
    parser.add_argument("--limit", type=int, help="samples of a LoCoMo-shaped file, or replies")
    parser.add_argument(
        "--settle", action="store_true", help="let `rerank = auto` be decided by this memory"
    )
    parser.add_argument("--cross-encoder", type=Path, help="its directory, for the shipped set")
    parser.add_argument("--model", type=Path, help="the model's directory")
    parser.add_argument(
        "--rerank",
        choices=("late", "cross", "auto", "off"),
        help="of the shipped set, --questions and --replies, whose memory must keep what it takes",
    )
    parser.add_argument("--save", type=Path, help="write the run, to compare it")
    parser.add_argument("--check", action="store_true", help="fail below the floor")
    args = parser.parse_args()
    if args.settle and not (args.questions or args.replies):
        parser.error("--settle asks --questions or --replies of the memory it is for")
    return args


if __name__ == "__main__":
    main()
