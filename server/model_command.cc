#include <fmt/core.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/base64.h"
#include "parser/parser.h"
#include "server/commands.h"
#include "server/config/signals.h"
#include "server/shell/shell.h"

namespace sluice::server {
namespace {

struct Language {
  std::string_view extension, name;
};
constexpr std::array<Language, 2> kLanguages = {{{".onnx", "onnx"}, {".json", "keras"}}};

constexpr size_t kLineBytes = 76;  // of base64, so that the statement has lines of readable length

std::string InLines(const std::string& text) {
  std::string lines = "\n";
  for (size_t begin = 0; begin < text.size(); begin += kLineBytes) {
    lines += text.substr(begin, kLineBytes) + "\n";
  }
  return lines;
}

Result<std::string> ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream content;
  content << in.rdbuf();
  if (!in.good()) {
    return NotFound(fmt::format("file {} cannot be read", path));
  }
  return content.str();
}

}  // namespace

std::string ModelLanguageOf(const std::string& file) {
  const std::string extension = std::filesystem::path(file).extension().string();
  for (const Language& language : kLanguages) {
    if (extension == language.extension) {
      return std::string(language.name);
    }
  }
  return "";
}

Result<std::string> CreateModelTypeText(const ModelPushOptions& options) {
  const std::string language = ModelLanguageOf(options.file);
  if (language.empty()) {
    return InvalidArgument(fmt::format("the end of {} says no language", options.file))
        .Hint("net.onnx is an ONNX file, net.json is Keras's to_json()");
  }
  const std::string name =
      options.name.empty() ? std::filesystem::path(options.file).stem().string() : options.name;
  const Result<parser::Name> read = parser::ParseName(name);
  if (!read.ok()) {
    return read.status().MovedTo({}).Because(fmt::format("the model type's name '{}'", name));
  }
  ASSIGN_OR_RETURN(const std::string content, ReadFile(options.file));
  const std::string body = language == "onnx" ? InLines(EncodeBase64(content)) : content;
  std::string tag = "$model$";
  for (int k = 0; body.find(tag) != std::string::npos; ++k) {
    tag = fmt::format("$model{}$", k);
  }
  return fmt::format("CREATE {}MODEL TYPE {} LANGUAGE {} AS {}{}{};\n",
                     options.replace ? "OR REPLACE " : "", name, language, tag, body, tag);
}

int RunModelPush(const Config& config, const ModelPushOptions& options) {
  Result<std::string> statement = CreateModelTypeText(options);
  if (!statement.ok()) {
    SayError(statement.status(), "");
    return kExitUsage;
  }
  SqlOptions sql;
  sql.gateway = options.gateway;
  sql.gateway_ca = options.gateway_ca;
  sql.scripts.push_back({std::move(statement).value(), options.file});
  return RunSql(config, sql);
}

}  // namespace sluice::server
