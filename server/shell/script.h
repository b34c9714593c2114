#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "server/shell/statement_buffer.h"

namespace sluice::server {

// A text to run, and where it comes from.
struct Script {
  std::string text;
  std::string file = {};  // for messages; "": typed, or -c
};

// Reads a whole file ("-": standard input).
Result<Script> ReadScript(const std::string& path);

// A part of a script: statements, or a line that is a command of the shell.
struct ScriptPart {
  size_t begin = 0;
  size_t end = 0;
  bool command = false;
  // The statements end with COPY FROM STDIN, and these lines are its data.
  std::optional<std::string_view> copied = std::nullopt;
};

// Whether the line is a command of the shell: it begins with
// ame, \? or .name, where a statement could begin.
bool IsShellCommand(std::string_view line);

// Where a command begins in a line after the end of a statement (SELECT 1; \dt), given what was
// typed before the line.
std::optional<size_t> FindCommandAfterStatement(const StatementBuffer& before,
                                                std::string_view line);

// Whether the last of the statements is COPY ... FROM STDIN.
bool EndsWithCopyFromStdin(std::string_view statements);

// The line that ends its data.
inline constexpr std::string_view kEndOfCopy = "\\.";

// Splits the script at commands, and at data of COPY FROM STDIN; most scripts are one part.
std::vector<ScriptPart> SplitAtCommands(std::string_view script);

}  // namespace sluice::server
