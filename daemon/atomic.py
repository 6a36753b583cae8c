"""`specd edit --atomic`: all new texts are put in place, or none."""

from specd.daemon import errors, report
from specd.daemon.errors import SpecdError
from specd.daemon.files import Staged
from specd.daemon.report import Result


def commit_all(staged: list[Staged], results: list[Result]) -> None:
    """Put all new texts in place, or none: after a failure those in place already are put back."""
    bad = next((result for result in results if result.exit_code > errors.NO_CHANGE), None)
    done: list[Staged] = []
    try:
        for new in staged if bad is None else ():
            new.commit(keeps_old=True)
            done.append(new)
    except SpecdError as error:
        bad = _failed(staged[len(done)], error, results)
        for new in done:
            try:
                new.restore()
            except SpecdError as failure:
                _failed(new, failure, results)
    for result in results:
        if result.exit_code == errors.DONE:
            result.is_written = bad is None and bool(staged)
            if bad is not None:
                result.message = f"{result.name}: not written, since {bad.name} failed (--atomic)."


def _failed(staged: Staged, error: SpecdError, results: list[Result]) -> Result:
    """The failure of one of `results`, in its place."""
    bad = report.failure(str(staged.source.path), error)
    results[next(index for index, result in enumerate(results) if result.name == bad.name)] = bad
    return bad
