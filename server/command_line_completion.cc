#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "server/command_line_internal.h"
#include "server/shell/shell.h"

namespace sluice::server {
namespace {

// What may follow a command, separated by blanks; nothing hidden.
struct Words {
  std::string options;
  std::string commands;
};

Words WordsOf(const CLI::App& command) {
  Words words;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty()) {
      continue;
    }
    for (const std::string& name : option->get_lnames()) {
      words.options += fmt::format(" --{}", name);
    }
    for (const std::string& name : option->get_snames()) {
      words.options += fmt::format(" -{}", name);
    }
  }
  for (const CLI::App* one : command.get_subcommands({})) {
    if (!one->get_group().empty()) {
      words.commands += fmt::format(" {}", one->get_name());
    }
  }
  return words;
}

// The branches of a case over the words that name a command: " model push".
std::string Branches(const CLI::App& command, const std::string& path) {
  const Words words = WordsOf(command);
  std::string branches = fmt::format("    \"{}\") options=\"{}\" commands=\"{}\" ;;\n", path,
                                     words.options, words.commands);
  for (const CLI::App* one : command.get_subcommands({})) {
    branches += Branches(*one, fmt::format("{} {}", path, one->get_name()));
  }
  return branches;
}

// The script defines the function `_sluice`, which completes options after a dash, the names of
// commands where one may stand, and file names elsewhere.
std::string BashCompletion(const CLI::App& app) {
  return fmt::format(R"(_sluice_words() {{
  case $1 in
{}    *) return 1 ;;
  esac
}}
_sluice() {{
  local path="" word options commands
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    if _sluice_words "$path $word"; then
      path+=" $word"
    fi
  done
  _sluice_words "$path"
  word=${{COMP_WORDS[COMP_CWORD]}}
  case $word in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
    *) COMPREPLY=($(compgen -W "$commands" -- "$word")) ;;
  esac
}}
complete -o default -F _sluice sluice
)",
                     Branches(app, ""));
}

}  // namespace

void AddCompletion(CLI::App& app, CommandLine& line) {
  app.add_subcommand("completion", "Print what completes these commands in bash: eval it")
      ->callback([&app, &line] {
        line.run = [&app] {
          std::fputs(BashCompletion(app).c_str(), stdout);
          return kExitOk;
        };
      });
}

}  // namespace sluice::server
