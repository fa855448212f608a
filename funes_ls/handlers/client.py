"""What the client can do, as it said in `initialize`; nothing it did not offer is used."""

from typing import Any

from msgspec import Struct


class Client(Struct, frozen=True, kw_only=True):
    """Capabilities that something here depends on.

    Attributes:
        virtual_documents: It asks for the text of `funes:` documents instead of opening files.
        text_document_content: It does so by `workspace/textDocumentContent` (LSP 3.18).
        markdown: Hovers may be Markdown.
        configuration: It answers `workspace/configuration`.
        configuration_registration: It tells of changed settings only to who has registered.
        lens_refresh: It takes `workspace/codeLens/refresh`.
        work_done: It takes `window/workDoneProgress/create`.
        show_document: It takes `window/showDocument`.
        action_literals: Code actions may be more than commands.
        symbol_resolve: A workspace symbol's range may come later.
        link_tooltips: Document links may have a tooltip.
        lens_at_once: It never resolves a lens on the first character that it shows (lsp-mode).
    """

    virtual_documents: bool = False
    text_document_content: bool = False
    markdown: bool = False
    configuration: bool = False
    configuration_registration: bool = False
    lens_refresh: bool = False
    work_done: bool = False
    show_document: bool = False
    action_literals: bool = False
    symbol_resolve: bool = False
    link_tooltips: bool = False
    lens_at_once: bool = False


def client_of(initialize: dict[str, Any]) -> Client:
    """Return what the params of `initialize`, as they came, say of the client."""
    offered = initialize.get("capabilities")
    content = has(offered, "workspace", "textDocumentContent")
    formats = value_at(offered, "textDocument", "hover", "contentFormat")
    resolved = value_at(offered, "workspace", "symbol", "resolveSupport", "properties")
    return Client(
        virtual_documents=content
        or is_true(offered, "experimental", "funes", "virtualDocuments")
        or is_true(initialize.get("initializationOptions"), "virtualDocuments")
        or is_true(initialize.get("initializationOptions"), "funes", "virtualDocuments"),
        text_document_content=content,
        markdown=isinstance(formats, list) and formats[:1] == ["markdown"],
        configuration=is_true(offered, "workspace", "configuration"),
        configuration_registration=is_true(
            offered, "workspace", "didChangeConfiguration", "dynamicRegistration"
        ),
        lens_refresh=is_true(offered, "workspace", "codeLens", "refreshSupport"),
        work_done=is_true(offered, "window", "workDoneProgress"),
        show_document=is_true(offered, "window", "showDocument", "support"),
        action_literals=has(offered, "textDocument", "codeAction", "codeActionLiteralSupport"),
        symbol_resolve=isinstance(resolved, list) and "location.range" in resolved,
        link_tooltips=is_true(offered, "textDocument", "documentLink", "tooltipSupport"),
        lens_at_once=value_at(initialize, "clientInfo", "name") == "emacs",
    )


def value_at(table: Any, *names: str) -> Any:
    """Return what stands under nested names, None when something on the way is missing."""
    for name in names:
        if not isinstance(table, dict):
            return None
        table = table.get(name)
    return table


def is_true(table: Any, *names: str) -> bool:
    """Return whether True stands under nested names."""
    return value_at(table, *names) is True


def has(table: Any, *names: str) -> bool:
    """Return whether a table stands under nested names."""
    return isinstance(value_at(table, *names), dict)
