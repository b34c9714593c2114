#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/shell/shell_session.h"

namespace sluice::server {

// What comes behind a command, for completion.
enum class CommandArgument { kNone, kTable, kModel, kFile, kWord, kTopic };

// Lines that the shell answers itself: each command declared once.
struct ShellCommand {
  std::string_view name;       // with its backslash or dot
  std::string_view arguments;  // for people
  std::string_view doc;
  CommandArgument argument = CommandArgument::kNone;
  std::string_view words = {};  // kWord: what it may be, with blanks between
  ShellSession::Outcome (*run)(ShellSession& session, std::string_view arguments) = nullptr;
};
const std::vector<ShellCommand>& ShellCommands();

// `line` is one for which IsShellCommand is true.
ShellSession::Outcome RunShellCommand(ShellSession& session, std::string_view line);

// Words separated by blanks; one that holds blanks is written in quotes. `quotes`, where it is
// given: those around each word, 0 where there are none.
std::vector<std::string> SplitArguments(std::string_view text, std::vector<char>* quotes = nullptr);

}  // namespace sluice::server
