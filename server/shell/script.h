#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace sluice::server {

// What is to be run, and where it comes from.
struct Script {
  std::string text;
  std::string file = {};  // for messages; "": typed, or -c
};

// Reads a file whole ("-": standard input).
Result<Script> ReadScript(const std::string& path);

// A stretch of a script: statements, or a line that the shell itself answers.
struct ScriptPart {
  size_t begin = 0;
  size_t end = 0;
  bool command = false;
};

// A line that begins with \name, \? or .name: the shell's own, where a statement could begin.
bool IsShellCommand(std::string_view line);

// The script cut at the lines that are commands; most scripts are one part.
std::vector<ScriptPart> SplitAtCommands(std::string_view script);

}  // namespace sluice::server
