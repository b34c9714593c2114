#include "server/shell/script.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "server/shell/statement_buffer.h"

namespace sluice::server {

Result<Script> ReadScript(const std::string& path) {
  std::FILE* file = path == "-" ? stdin : std::fopen(path.c_str(), "rb");
  if (file == nullptr) {
    return NotFound(fmt::format("cannot read the script {}: {}", path, std::strerror(errno)))
        .SqlState("58P01");
  }
  Script script;
  script.file = path == "-" ? "<stdin>" : path;
  char buffer[1 << 16];
  size_t size = 0;
  while ((size = std::fread(buffer, 1, sizeof buffer, file)) > 0) {
    script.text.append(buffer, size);
  }
  const bool failed = std::ferror(file) != 0;
  if (file != stdin) {
    std::fclose(file);
  }
  if (failed) {  // for example, a folder
    return Unavailable(fmt::format("cannot read the script {}: {}", path, std::strerror(errno)));
  }
  return script;
}

bool IsShellCommand(std::string_view line) {
  const size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos || begin + 1 >= line.size()) {
    return false;
  }
  const char next = line[begin + 1];
  const bool letter = std::isalpha(static_cast<unsigned char>(next)) != 0;
  return (line[begin] == '\\' && (letter || next == '?')) || (line[begin] == '.' && letter);
}

std::vector<ScriptPart> SplitAtCommands(std::string_view script) {
  std::vector<ScriptPart> parts;
  StatementBuffer buffer;
  size_t statements = 0;  // start of the statements that are not in a part yet
  for (size_t at = 0; at < script.size();) {
    const size_t end = std::min(script.find('\n', at), script.size());
    const std::string_view line = script.substr(at, end - at);
    const size_t next = std::min(end + 1, script.size());
    if (buffer.at_beginning() && IsShellCommand(line)) {
      if (statements < at) {
        parts.push_back({statements, at, false});
      }
      parts.push_back({at, end, true});
      statements = next;
    } else {
      buffer.Add(line);
      if (buffer.complete()) {
        buffer.Take();
      }
    }
    at = next;
  }
  if (statements < script.size()) {
    parts.push_back({statements, script.size(), false});
  }
  return parts;
}

}  // namespace sluice::server
