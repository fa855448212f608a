"""Puts the language server together."""

from collections.abc import Mapping
from typing import Any

from lsprotocol import types

from funes_ls.handlers import (
    code_actions,
    code_lens,
    configuration,
    documents,
    hover,
    links,
    logs,
    recall,
    symbols,
    workspaces,
)
from funes_ls.handlers.front import Front


def make_front(env: Mapping[str, str]) -> Front:
    """Return the language server of the home that an environment names."""
    ls = Front(env)

    @ls.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        ls.begin(params)

    @ls.feature(types.INITIALIZED)
    def initialized(_params: types.InitializedParams) -> None:
        ls.started()

    # Documents are kept by pygls; being told of them has to be asked for all the same.
    for method in (types.TEXT_DOCUMENT_DID_OPEN, types.TEXT_DOCUMENT_DID_CLOSE):
        ls.feature(method)(_take_note)
    for feature in (
        code_actions,
        code_lens,
        configuration,
        documents,
        hover,
        links,
        logs,
        recall,
        symbols,
        workspaces,
    ):
        feature.register(ls)
    return ls


def _take_note(_params: Any) -> None:
    """Do nothing more than pygls does."""
