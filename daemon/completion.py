"""Completion scripts for bash, zsh and fish, made from the parser itself so that they cannot fall behind it."""

import argparse
from typing import Literal

from specd.daemon import arguments

Shell = Literal["bash", "zsh", "fish"]


def script(shell: Shell) -> str:
    """The script to source, e.g. `eval "$(specd completion bash)"`."""
    commands = _commands()
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](commands)


def _commands() -> dict[str, tuple[str, list[argparse.Action]]]:
    """name -> (help, options) of every subcommand."""
    parser = arguments.build()
    sub = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    helps = {choice.dest: choice.help or "" for choice in sub._choices_actions}
    return {
        name: (helps.get(name, ""), [action for action in command._actions if action.help != argparse.SUPPRESS])
        for name, command in sub.choices.items()
    }


def _bash(commands: dict[str, tuple[str, list[argparse.Action]]]) -> str:
    lines = [
        "_specd() {",
        '    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"',
        '    if [ "$COMP_CWORD" -eq 1 ]; then',
        f"        COMPREPLY=($(compgen -W '{' '.join(commands)} --help --version' -- \"$word\"))",
        "        return",
        "    fi",
        '    case "${COMP_WORDS[1]}:$before" in',
    ]
    for name, (_, actions) in commands.items():
        for action in actions:
            if action.choices:
                flags = action.option_strings or [name]
                choices = " ".join(map(str, action.choices))
                pattern = "|".join(f"{name}:{flag}" for flag in flags)
                lines.append(f"        {pattern}) COMPREPLY=($(compgen -W '{choices}' -- \"$word\")); return ;;")
    lines.append("    esac")
    lines.append('    case "${COMP_WORDS[1]}:$word" in')
    for name, (_, actions) in commands.items():
        flags = " ".join(flag for action in actions for flag in action.option_strings)
        lines.append(f"        {name}:-*) COMPREPLY=($(compgen -W '{flags}' -- \"$word\")) ;;")
    lines += [
        '        *) COMPREPLY=($(compgen -f -- "$word")) ;;',
        "    esac",
        "}",
        "complete -o filenames -F _specd specd",
    ]
    return "\n".join(lines) + "\n"


def _zsh(commands: dict[str, tuple[str, list[argparse.Action]]]) -> str:
    lines = ["#compdef specd", "_specd() {", "    local -a commands", "    commands=("]
    lines += [f"        '{name}:{_plain(text)}'" for name, (text, _) in commands.items()]
    lines += [
        "    )",
        "    if (( CURRENT == 2 )); then _describe command commands; return; fi",
        '    case "$words[2]" in',
    ]
    for name, (_, actions) in commands.items():
        specs = [spec for action in actions for spec in _zsh_specs(action)]
        lines.append(f"        {name}) shift words; (( CURRENT-- )); _arguments {' '.join(specs)} ;;")
    lines += ["    esac", "}", 'compdef _specd specd 2>/dev/null || _specd "$@"']
    return "\n".join(lines) + "\n"


def _zsh_specs(action: argparse.Action) -> list[str]:
    takes = "" if action.nargs == 0 else f":{(action.metavar or action.dest)!s}:{_zsh_values(action)}"
    if not action.option_strings:
        return [f"'*{takes}'"]
    return [f"'{flag}[{_plain(action.help or '')}]{takes}'" for flag in action.option_strings]


def _zsh_values(action: argparse.Action) -> str:
    return f"({' '.join(map(str, action.choices))})" if action.choices else "_files"


def _fish(commands: dict[str, tuple[str, list[argparse.Action]]]) -> str:
    lines = ["complete -c specd -f -n __fish_use_subcommand"]
    for name, (text, _) in commands.items():
        lines.append(f"complete -c specd -n __fish_use_subcommand -a {name} -d '{_plain(text)}'")
    for name, (_, actions) in commands.items():
        for action in actions:
            flags = " ".join(
                f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in action.option_strings
            )
            values = f" -x -a '{' '.join(map(str, action.choices))}'" if action.choices else ""
            needs = " -r" if action.nargs != 0 and flags and not values else ""
            if flags or values:
                parts = f"-n '__fish_seen_subcommand_from {name}' {flags}{values}{needs}"
                lines.append(f"complete -c specd {parts} -d '{_plain(action.help or '')}'")
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Help text without what the shells' quoting and zsh's specs give a meaning."""
    return text.replace("'", "").replace("[", "(").replace("]", ")").replace(":", ",")
