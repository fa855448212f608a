"""The review in a terminal: sessions on the left, what they say on the right, decided by arrows."""

from collections.abc import Callable
from datetime import datetime
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widgets import ContentSwitcher, Footer, Input, OptionList, Static
from textual.widgets.option_list import Option
from textual.worker import get_current_worker

from funes_ls.curate.candidates import (
    Candidate,
    State,
    blocks_of,
    candidates,
    matches,
    prompts_of,
)
from funes_ls.gate.check import GateReport, check
from funes_ls.gate.rows import allowed_rows, blocks_to_check
from funes_ls.hub.decisions import Decisions, Verdict
from funes_ls.indexer.blocks import StoredBlock
from funes_ls.indexer.errors import FunesError
from funes_ls.indexer.memory import MemoryView
from funes_ls.render import safe

_MARKS: dict[State, tuple[str, str]] = {
    "include": ("+", "$success"),
    "exclude": ("-", "$error"),
    "pending": ("?", "$warning"),
}
_TITLE_CHARS = 200
_BLOCK_CHARS = 4_000
_PROMPT_CHARS = 20_000


class SessionList(OptionList):
    """The sessions; arrows to the sides decide."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right", "app.decide('include')", "Include"),
        Binding("left", "app.decide('exclude')", "Exclude"),
        Binding("tab,p", "app.passages", "Passages", priority=True),
        Binding("c", "app.copy_id", "Copy id"),
        Binding("slash", "app.filter", "Filter"),
    ]


class PassageList(OptionList):
    """The blocks of a session; each may be kept back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space,left", "app.withhold", "Keep back / let go"),
        Binding("tab,p", "app.sessions", "Sessions", priority=True),
        Binding("c", "app.copy_block", "Copy text"),
    ]


class Review(App[None]):
    """Decides on the sessions of one memory; every decision is saved as it is made."""

    TITLE = "funes curate"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #sessions { width: 45%; }
    #right { width: 55%; border-left: solid $primary; }
    #filter { display: none; }
    #filter.shown { display: block; }
    #head { height: auto; padding: 0 1; }
    #prompts { padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Done"),
        Binding("ctrl+c", "leave", show=False, priority=True),
    ]

    def __init__(
        self, view: MemoryView, decisions: Decisions, memory: str, save: Callable[[], None]
    ) -> None:
        """Review what may go to a memory; `save` writes the decisions."""
        super().__init__()
        self._view = view
        self._decisions = decisions
        self._memory = memory
        self._save = save
        self._all: dict[str, Candidate] = {}
        self._blocks: list[StoredBlock] = []
        self._report: GateReport | None = None
        self._trouble = ""
        self._texts: dict[str, list[str]] = {}

    def compose(self) -> ComposeResult:
        """Lay the screen out."""
        yield Static(id="head")
        yield Input(placeholder="words of what you asked", id="filter")
        with Horizontal():
            yield SessionList(id="sessions", markup=False)
            with ContentSwitcher(initial="reading", id="right"):
                with VerticalScroll(id="reading"):
                    yield Static(id="prompts")
                yield PassageList(id="passages", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """List the sessions."""
        self._refill()
        self._list.focus()

    @property
    def _list(self) -> SessionList:
        return self.query_one("#sessions", SessionList)

    @property
    def _passages(self) -> PassageList:
        return self.query_one("#passages", PassageList)

    def _current(self) -> Candidate | None:
        option = self._list.highlighted_option
        return self._all.get(option.id or "") if option is not None else None

    # What is listed

    def _refill(self) -> None:
        """List the sessions that the filter lets through."""
        needle = self.query_one("#filter", Input).value
        found = candidates(self._view, self._decisions)
        self._all = {one.session_id: one for one in found.sessions}
        shown = [one for one in found.sessions if not needle.strip() or self._fits(one, needle)]
        self._list.set_options([Option(_row(one), id=one.session_id) for one in shown])
        if shown:
            self._list.highlighted = 0
        else:
            self.query_one("#prompts", Static).update(Content("No session."))
        self._tell()

    def _fits(self, one: Candidate, needle: str) -> bool:
        return matches(needle, [one.title, one.session_id, *self._prompts(one.session_id)])

    def _prompts(self, session_id: str) -> list[str]:
        if session_id not in self._texts:
            self._texts[session_id] = prompts_of(self._view, session_id)
        return self._texts[session_id]

    def _tell(self) -> None:
        counts = {state: 0 for state in _MARKS}
        for one in self._all.values():
            counts[one.state] += 1
        kept = f", {len(self._decisions.withheld)} blocks kept back" if (
            self._decisions.withheld
        ) else ""  # fmt: skip
        project = f" ({self._decisions.project})" if self._decisions.project else ""
        text = (
            f"{self._memory}{project}: {counts['include']} go, {counts['exclude']} stay, "
            f"{counts['pending']} to be decided on{kept}"
        )
        self.query_one("#head", Static).update(Content(safe(text)))

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Show what the user asked in the session that is pointed at."""
        if event.option_list is self._list and (one := self._current()) is not None:
            told = "\n\n".join(f"> {safe(text)}" for text in self._prompts(one.session_id))
            body = told[:_PROMPT_CHARS] or "Nothing the user wrote is left of it."
            self.query_one("#prompts", Static).update(Content(body))
            self.query_one("#reading", VerticalScroll).scroll_home(animate=False)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Enter ends the review; on a passage it keeps it back or lets it go."""
        if event.option_list is self._list:
            self.exit()
        else:
            self.action_withhold()

    # What is decided

    def action_decide(self, verdict: str) -> None:
        """Include or exclude the session; the same once more takes it back."""
        one = self._current()
        if one is None:
            return
        wanted: Verdict = "include" if verdict == "include" else "exclude"
        explicit = (
            one.session_id in self._decisions.included
            if wanted == "include"
            else one.session_id in self._decisions.excluded
        )
        again = explicit and one.state == wanted
        self._decisions.decide(one.session_id, None if again else wanted, chunks=one.chunks)
        self._save()
        session = self._view.catalog.session(one.session_id)
        assert session is not None  # it is listed
        after = _replaced(one, self._decisions.state_of(session))
        self._all[one.session_id] = after
        self._list.replace_option_prompt(one.session_id, _row(after))
        self._tell()

    def action_withhold(self) -> None:
        """Keep a block back, or let it go again."""
        at = self._passages.highlighted
        if at is None or not self._blocks:
            return
        block = self._blocks[at]
        self._decisions.withhold(block.key, back=block.key not in self._decisions.withheld)
        self._save()
        self._passages.replace_option_prompt_at_index(at, self._passage(block))
        self._tell()

    # Passages

    def action_passages(self) -> None:
        """Show every block of the session as it would leave."""
        one = self._current()
        if one is None:
            return
        self._blocks = blocks_of(self._view, one.session_id)
        self._report, self._trouble = None, ""
        self._refill_passages()
        self.query_one("#right", ContentSwitcher).current = "passages"
        self._passages.focus()
        blocks = self._blocks
        self.run_worker(lambda: self._ask_gate(blocks), thread=True, exclusive=True, group="gate")

    def _ask_gate(self, blocks: list[StoredBlock]) -> None:
        worker = get_current_worker()
        report, trouble = None, ""
        try:
            report = check(blocks_to_check(blocks), cancelled=lambda: worker.is_cancelled)
        except FunesError as exc:
            trouble = exc.message
        if not worker.is_cancelled:
            self.call_from_thread(self._gate_said, blocks, report, trouble)

    def _gate_said(
        self, blocks: list[StoredBlock], report: GateReport | None, trouble: str
    ) -> None:
        if blocks is not self._blocks:
            return
        self._report, self._trouble = report, trouble
        at = self._passages.highlighted
        self._refill_passages()
        self._passages.highlighted = at
        if trouble:
            self.notify(safe(trouble), severity="error")

    def _refill_passages(self) -> None:
        self._passages.set_options([Option(self._passage(one)) for one in self._blocks])
        if self._blocks:
            self._passages.highlighted = 0

    def _passage(self, block: StoredBlock) -> Content:
        first = block.rows[0]
        name = " ".join(filter(None, (first.role, first.block_type, first.tool_name)))
        mark, style = self._mark(block)
        text = safe(block.text)
        more = (
            f"\n… {len(text) - _BLOCK_CHARS:,} more characters" if len(text) > _BLOCK_CHARS else ""
        )
        return Content.assemble((f"{mark} {safe(name)}\n", style), f"{text[:_BLOCK_CHARS]}{more}\n")

    def _mark(self, block: StoredBlock) -> tuple[str, str]:
        if block.key in self._decisions.withheld:
            return "- kept back ·", "$error"
        if self._trouble:
            return "? not scanned ·", "$warning"
        if self._report is None:
            return "… being scanned ·", "$warning"
        if not allowed_rows(block, self._report):
            rules = sorted({
                rule
                for one in blocks_to_check([block])
                for rule in self._report.withheld.get(one.key, ())
            })  # fmt: skip
            return f"! stays: {', '.join(rules) or 'not whole'} ·", "$error"
        return "+", "$success"

    # Moving about

    def action_sessions(self) -> None:
        """Go back to the sessions."""
        self.query_one("#right", ContentSwitcher).current = "reading"
        self._list.focus()

    def action_filter(self) -> None:
        """Ask for words that the session is to hold."""
        field = self.query_one("#filter", Input)
        field.add_class("shown")
        field.focus()

    def on_input_changed(self, _event: Input.Changed) -> None:
        """Filter as the user writes."""
        self._refill()

    def on_input_submitted(self, _event: Input.Submitted) -> None:
        """Go on with what the filter has left."""
        self._list.focus()

    def action_leave(self) -> None:
        """Leave the filter, the passages, or the review."""
        field = self.query_one("#filter", Input)
        if self.focused is field:
            field.value = ""
            field.remove_class("shown")
            self._list.focus()
        elif self.focused is self._passages:
            self.action_sessions()
        else:
            self.exit()

    def action_copy_id(self) -> None:
        """Copy the session's id."""
        if (one := self._current()) is not None:
            self.copy_to_clipboard(one.session_id)
            self.notify("The session's id is on the clipboard.")

    def action_copy_block(self) -> None:
        """Copy the block's text."""
        at = self._passages.highlighted
        if at is not None and self._blocks:
            self.copy_to_clipboard(safe(self._blocks[at].text))
            self.notify("The block is on the clipboard.")


def _row(one: Candidate) -> Content:
    mark, style = _MARKS[one.state]
    day = datetime.fromtimestamp(one.ended_us / 1e6).strftime("%Y-%m-%d") if one.ended_us else ""
    title = " ".join(safe(one.title).split())[:_TITLE_CHARS] or safe(one.session_id)
    return Content.assemble((f"{mark} ", style), f"{day:10} {title}")


def _replaced(one: Candidate, state: State) -> Candidate:
    from msgspec.structs import replace

    return replace(one, state=state)
