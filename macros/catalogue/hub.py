"""Models of the Hugging Face Hub that the catalog lacks: their config.json, and the headers of their files.

No host is contacted unless a name requires it, and no weight is ever downloaded. The library `huggingface_hub` (extra
`hub`) makes the requests, so its cache, `HF_ENDPOINT`, `HF_TOKEN` and `HF_HUB_OFFLINE` apply.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..engine.bounds import LARGEST_HEADER, LARGEST_INDEX, LARGEST_TEXT
from ..engine.errors import Problem, named, shorten
from ..engine.files import read_json
from . import presets
from .gguf_header import LARGEST_HEADER as LARGEST_GGUF
from .gguf_header import ends_within
from .models import Model
from .names import is_hub_name
from .resolving import Reference, pieces_of, pieces_of_file, reference
from .stored import INDEX

CONFIG, SINGLE = "config.json", "model.safetensors"
MOST_FILES = 2_000  # safetensors files of one model
_FIRST = 100_000  # bytes of a file that hold most headers
_PART = re.compile(r"-\d{5}-of-\d{5}(?=\.gguf$)", re.IGNORECASE)


def load(name: str, files: bool = False, revision: str | None = None) -> Model:
    """The model of any name that `presets.load` knows; otherwise `organization/name` or its address on the hub.

    With `files`, the headers of its safetensors files are read too, and they decide about bytes; for a GGUF file, named
    as `organization/name:Q4_K_M` or by its address, only the header is read. Raises `Problem`, also for a model that is
    gated, private or missing, and if the hub cannot be reached.
    """
    repository = "" if os.path.exists(name) else _repository(name)
    is_asked = repository and (files or revision or not (presets.meant(name).slug or presets.meant(name).why))
    if not is_asked or name in presets.paths():
        if files or revision:
            option = "files" if files else "revision"
            raise Problem("is for a model of the hub", "name it organization/name", parameter=option)
        return presets.load(name)
    try:
        library = _library()
    except ImportError:
        problem = presets.unknown(name)
        raise Problem(problem.what, f"{problem.mend}; to ask the hub, pip install 'every-parameter[hub]'") from None
    with _in_one_line(repository, revision):
        if files and "gguf" in pieces_of(name):
            file, path = _gguf(library, repository, revision, name)
            try:
                return presets.of_gguf(f"{repository}/{file}", path)
            except Problem as problem:
                raise Problem(problem.what, problem.mend, file) from None
        config = _config(library, repository, revision)
        folder = _headers(library, repository, revision, config) if files else None
        return presets.of_files(repository, config, folder)


def config_file(name: str) -> str:
    """The path of a config.json: the file or the folder with this name, or the hub's file for `organization/name`.

    Raises `Problem` as `load` does.
    """
    repository = "" if os.path.exists(name) else _repository(name)
    if not repository:
        return name
    try:
        library = _library()
    except ImportError:
        raise Problem(f"{named(name)}: no such file", "pip install 'every-parameter[hub]' to ask the hub") from None
    with _in_one_line(repository, None):
        return str(_config(library, repository, None))


def _repository(name: str) -> str:
    """`organization/name` from a name or an address; empty if there is none, as for the path of a file."""
    is_path = name.strip().startswith(("/", "./", "~", "\\")) or (name.count("/") > 2 and name.endswith(".json"))
    if is_path and "://" not in name:
        return ""
    found = reference(name)
    whole = f"{found.organization}/{found.name}"
    is_file = found.name.lower().endswith((".json", ".safetensors", ".gguf"))
    return whole if found.organization and not is_file and is_hub_name(whole) else ""


def _library():
    import huggingface_hub
    import huggingface_hub.constants
    import huggingface_hub.errors
    import huggingface_hub.utils

    return huggingface_hub


def _host(library) -> str:
    """The host that is contacted, without port and credentials."""
    from urllib.parse import urlsplit

    return urlsplit(library.constants.ENDPOINT).hostname or "the hub"


def _config(library, repository: str, revision: str | None) -> Path:
    """The config.json, in the hub's cache."""
    return _downloaded(library, repository, CONFIG, revision, LARGEST_TEXT)


def _downloaded(library, repository: str, file: str, revision: str | None, most: int) -> Path:
    """A small file, in the hub's cache. Raises `Problem` for a large one before it is downloaded."""
    cached = library.try_to_load_from_cache(repository, file, revision=revision)
    if not isinstance(cached, str) and not library.constants.is_offline_mode():
        said = library.get_hf_file_metadata(library.hf_hub_url(repository, file, revision=revision), token=None)
        if said.size is not None and said.size > most:
            raise Problem(f"{file} has {said.size:,} bytes, and at most {most:,} are read", "give another model")
    path = Path(library.hf_hub_download(repository, file, revision=revision))
    if path.stat().st_size > most:
        raise Problem(f"{file} has {path.stat().st_size:,} bytes, and at most {most:,} are read", "give another model")
    return path


def _folder() -> Path:
    """A folder for headers that is deleted when the program ends."""
    import atexit
    import shutil
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="every-parameter-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _headers(library, repository: str, revision: str | None, config: Path) -> Path:
    """A folder with the config and only the header of each safetensors file."""
    folder = _folder()
    (folder / CONFIG).write_bytes(config.read_bytes())
    for file in _files(library, repository, revision):
        (folder / file).write_bytes(_header(library, repository, file, revision))
    return folder


def _files(library, repository: str, revision: str | None) -> list[str]:
    """The safetensors files: those of the index, or the only one."""
    try:
        index = _downloaded(library, repository, INDEX, revision, LARGEST_INDEX)
    except library.errors.EntryNotFoundError:
        return [SINGLE]
    listed = read_json(index, LARGEST_INDEX).get("weight_map")
    files = sorted({str(file) for file in listed.values()}) if isinstance(listed, dict) else []
    wrong = [
        file for file in files if not file.endswith(".safetensors") or "/" in file or "\\" in file or file[0] == "."
    ]
    if wrong or not 0 < len(files) <= MOST_FILES:
        found = f"names {shorten(wrong[0])}" if wrong else f"names {len(files):,} files"
        raise Problem(f"{INDEX} {found}", f"expected 1 to {MOST_FILES:,} safetensors files beside it")
    return files


def _gguf(library, repository: str, revision: str | None, name: str) -> tuple[str, Path]:
    """The GGUF file that a name refers to, and the path of its header, next to the headers of its other parts."""
    listed = library.HfApi().model_info(repository, revision=revision).siblings or []
    parts = _parts_meant([one.rfilename for one in listed], reference(name))
    folder = _folder()
    for file in parts:
        data, most = b"", _FIRST
        while True:
            data += _range(library, repository, file, revision, len(data), most)
            if len(data) < most or most >= LARGEST_GGUF or not ends_within(data):
                break
            most = min(8 * most, LARGEST_GGUF)
        (folder / file.rpartition("/")[2]).write_bytes(data)
    return parts[0], folder / parts[0].rpartition("/")[2]


def _parts_meant(files: list[str], called: Reference) -> list[str]:
    """The only GGUF file in a repository that an address or a tag refers to, or all its parts. Raises `Problem` if
    there are others."""
    place, tag = called.place.lower(), pieces_of(called.tag)
    sets: dict[str, list[str]] = {}
    for file in sorted(files):
        name = file.rpartition("/")[2].lower()
        pieces = pieces_of_file(name)[:-1]
        is_meant = pieces[len(pieces) - len(tag) :] == tag and ("ud" in pieces) <= ("ud" in tag or not tag)
        is_meant = is_meant and not name.startswith(("mmproj", "imatrix"))
        is_same = _PART.sub("", name) == _PART.sub("", place) if place else is_meant
        if is_same and name.endswith(".gguf") and "\\" not in name:
            sets.setdefault(_PART.sub("", file), []).append(file)
    if len(sets) != 1:
        shown = ", ".join(named(one.rpartition("/")[2]) for one in list(sets)[:4])
        what = (
            f"its repository has {len(sets)} such GGUF files: {shown}"
            if sets
            else "its repository has no such GGUF file"
        )
        raise Problem(what, "name one, as organization/name:Q4_K_M, or give its address")
    [parts] = sets.values()
    if len(parts) > MOST_FILES:
        raise Problem(f"has {len(parts):,} parts, and at most {MOST_FILES:,} are read", "give another model")
    return parts


def _header(library, repository: str, file: str, revision: str | None) -> bytes:
    """The header at the beginning of a file, read by range requests that never fetch more than they ask for."""
    begun = _range(library, repository, file, revision, 0, _FIRST)
    length = int.from_bytes(begun[:8], "little")
    if len(begun) < 8 or length > LARGEST_HEADER:
        raise Problem(f"{named(file)} begins with a list of tensors of {length:,} bytes", "it is no safetensors file")
    if len(begun) < 8 + length:
        begun += _range(library, repository, file, revision, len(begun), 8 + length)
    if len(begun) < 8 + length:
        raise Problem(f"{named(file)} ends within its list of tensors", "try again later: the answer was cut")
    return begun[: 8 + length]


def _range(library, repository: str, file: str, revision: str | None, begin: int, end: int) -> bytes:
    """The bytes of a file from `begin` to `end`, or to the end of the file."""
    headers = library.utils.build_hf_headers() | {"Range": f"bytes={begin}-{end - 1}"}
    address, found = library.hf_hub_url(repository, file, revision=revision), b""
    with library.get_session().stream("GET", address, headers=headers, follow_redirects=True) as answer:
        library.utils.hf_raise_for_status(answer)
        if answer.status_code != 206 and begin:
            raise Problem(
                f"{named(file)}: the host does not answer range requests", "download the files, and give the folder"
            )
        for chunk in answer.iter_bytes(65_536):
            found += chunk
            if len(found) >= end - begin:
                break
    return found[: end - begin]


@contextmanager
def _in_one_line(repository: str, revision: str | None) -> Iterator[None]:
    """Turn the library's exceptions into one line that says what to do."""
    library = _library()
    library.utils.disable_progress_bars()
    library.utils.logging.set_verbosity(logging.CRITICAL)  # our one line at the end replaces its messages
    errors, host = library.errors, _host(library)
    try:
        yield
    except Problem as problem:
        raise problem.at(repository) from None
    except errors.GatedRepoError:
        mend = f"accept its terms on {host}, then set HF_TOKEN"
        raise Problem(f"{host} gives its files only to those who accepted its terms", mend, repository) from None
    except errors.RepositoryNotFoundError:
        mend = "check the name; for a private model, set HF_TOKEN"
        raise Problem(f"{host} has no such model, or it is private", mend, repository) from None
    except errors.RevisionNotFoundError:
        raise Problem(f"no revision {shorten(revision)}", "name a branch, a tag or a commit", repository) from None
    except (errors.OfflineModeIsEnabled, errors.LocalEntryNotFoundError) as error:
        if library.constants.is_offline_mode():
            mend = "unset HF_HUB_OFFLINE to ask the hub"
            raise Problem("not in the hub's cache, and HF_HUB_OFFLINE is set", mend, repository) from None
        raise _unreachable(host, error, repository) from None
    except errors.EntryNotFoundError:
        mend = "give a repository with a config.json, or the path of one; of a GGUF file, --files reads the header"
        raise Problem("its repository has no such file as config.json or model.safetensors", mend, repository) from None
    except errors.HFValidationError:
        raise Problem("no name of a repository", "write organization/name", repository) from None
    except errors.HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else 0
        if status == 429:
            raise Problem(
                f"{host} asks for fewer requests", "wait a few minutes, or set HF_TOKEN", repository
            ) from None
        raise Problem(f"{host} answered with status {status}", "try again later", repository) from None
    except (OSError, ValueError, RuntimeError, _http_error(library)) as error:
        raise _unreachable(host, error, repository) from None


def _http_error(library) -> type[Exception]:
    """The base class of the client library's errors: `httpx`'s, in any of its releases."""
    return next(
        one for one in library.errors.HfHubHTTPError.__mro__ if one.__name__ in ("HTTPError", "RequestException")
    )


def _unreachable(host: str, error: Exception, repository: str) -> Problem:
    why = type(error).__name__
    return Problem(f"{host} cannot be reached ({why})", "check the network, or HF_ENDPOINT", repository)
