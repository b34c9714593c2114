#include "server/shell/script.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/letter_case.h"
#include "parser/lexer.h"

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

std::optional<size_t> FindCommandAfterStatement(const StatementBuffer& before,
                                                std::string_view line) {
  for (size_t at = line.find('\\'); at != std::string_view::npos; at = line.find('\\', at + 1)) {
    const size_t last = line.substr(0, at).find_last_not_of(" \t");
    const bool follows_end =
        last != std::string_view::npos && (line[last] == ';' || line[last] == '/');
    if (!follows_end || !IsShellCommand(line.substr(at))) {
      continue;
    }
    StatementBuffer upto = before;
    upto.Add(line.substr(0, at));
    StatementBuffer with = before;
    with.Add(line.substr(0, at + 1));
    if (upto.complete() && !with.complete()) {  // or else it is in a comment
      return at;
    }
  }
  return std::nullopt;
}

bool EndsWithCopyFromStdin(std::string_view statements) {
  if (UpperAscii(statements).find("STDIN") == std::string::npos) {
    return false;
  }
  parser::Lexer lexer(statements);
  bool copies = false;
  bool from_stdin = false;
  parser::Token before;
  before.text = ";";
  for (auto next = lexer.NextSql({}); next.ok() && next->kind != parser::Token::Kind::kEnd;
       next = lexer.NextSql(before)) {
    if (before.text == ";" && next->text != ";") {
      copies = next->IsWord("COPY");
      from_stdin = false;
    } else if (before.IsWord("FROM") && next->IsWord("STDIN")) {
      from_stdin = true;
    }
    before = *next;
  }
  return copies && from_stdin;
}

std::vector<ScriptPart> SplitAtCommands(std::string_view script) {
  std::vector<ScriptPart> parts;
  StatementBuffer buffer;
  size_t statements = 0;  // start of the statements that are not in a part yet
  const auto end_part = [&](size_t at) {
    if (statements < at) {
      parts.push_back({statements, at, false});
    }
  };
  for (size_t at = 0; at < script.size();) {
    const size_t end = std::min(script.find('\n', at), script.size());
    std::string_view line = script.substr(at, end - at);
    const size_t next = std::min(end + 1, script.size());
    const std::optional<size_t> after = FindCommandAfterStatement(buffer, line);
    if (after || (IsShellCommand(line) && buffer.at_beginning())) {
      const size_t command = at + after.value_or(0);
      end_part(command);
      parts.push_back({command, end, true});
      statements = next;
      buffer.Take();
      at = next;
      continue;
    }
    buffer.Add(line);
    at = next;
    if (buffer.complete() && EndsWithCopyFromStdin(buffer.Take())) {
      end_part(at);
      const size_t data = at;
      size_t data_end = at;
      for (bool more = true; more && at < script.size(); data_end = more ? at : data_end) {
        const size_t line_end = std::min(script.find('\n', at), script.size());
        line = script.substr(at, line_end - at);
        more = line != kEndOfCopy && line != "\\.\r";
        at = std::min(line_end + 1, script.size());
      }
      parts.back().copied = script.substr(data, data_end - data);
      statements = at;
    }
  }
  end_part(script.size());
  if (statements < script.size() && EndsWithCopyFromStdin(buffer.text())) {  // without a semicolon
    parts.back().copied = "";
  }
  return parts;
}

}  // namespace sluice::server
