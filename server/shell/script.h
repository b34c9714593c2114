#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

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
};

// Whether the line is a command of the shell: it begins with
// ame, \? or .name, where a statement could begin.
bool IsShellCommand(std::string_view line);

// Splits the script at the lines that are commands; most scripts are one part.
std::vector<ScriptPart> SplitAtCommands(std::string_view script);

}  // namespace sluice::server
