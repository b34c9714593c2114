#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/shell/shell_session.h"

namespace sluice::server {

// What follows a command, for completion.
enum class CommandArgument { kNone, kTable, kModel, kFile, kWord, kTopic };

// A command of the shell; each is declared once.
struct ShellCommand {
  std::string_view name;       // with its backslash or dot
  std::string_view arguments;  // for the help text
  std::string_view doc;
  CommandArgument argument = CommandArgument::kNone;
  std::string_view words = {};  // kWord: the allowed words, separated by blanks
  ShellSession::Outcome (*run)(ShellSession& session, std::string_view arguments) = nullptr;
};
const std::vector<ShellCommand>& ShellCommands();

// `line`: one for which IsShellCommand is true.
ShellSession::Outcome RunShellCommand(ShellSession& session, std::string_view line);

// Splits at blanks; a word that contains blanks is written in quotes. `quotes`, if given, receives
// the quote character around each word, 0 if there is none.
std::vector<std::string> SplitArguments(std::string_view text, std::vector<char>* quotes = nullptr);

}  // namespace sluice::server
