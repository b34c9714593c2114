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
#include "server/config/terminal.h"
#include "server/shell/shell.h"

namespace sluice::server {
namespace {

struct Language {
  std::string_view extension, name;
};
constexpr std::array<Language, 3> kLanguages = {
    {{".onnx", "onnx"}, {".json", "keras"}, {".py", "pytorch"}}};

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

// net.py:Wide is a class of a file; another file has no class.
struct ModelFile {
  std::string path, class_name;
};
ModelFile SplitClass(const std::string& file) {
  constexpr std::string_view kPython = ".py:";
  const size_t at = file.rfind(kPython);
  return at == std::string::npos
             ? ModelFile{file, ""}
             : ModelFile{file.substr(0, at + kPython.size() - 1), file.substr(at + kPython.size())};
}

// The name of a type is that of its class: another one becomes a second name.
void NameClass(const std::string& type, const std::string& class_name, std::string* source) {
  const std::string name = type.substr(type.rfind('.') + 1);
  if (!class_name.empty() && name != class_name) {
    *source += fmt::format("\n\n{} = {}  # the model type's name\n", name, class_name);
  }
}

}  // namespace

std::string ModelTypeNameOf(const std::string& file) {
  const ModelFile split = SplitClass(file);
  return split.class_name.empty() ? std::filesystem::path(split.path).stem().string()
                                  : split.class_name;
}

std::string ModelLanguageOf(const std::string& file) {
  const std::string extension = std::filesystem::path(SplitClass(file).path).extension().string();
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
        .Hint("net.onnx is an ONNX file, net.json is Keras's to_json(), net.py:Class is PyTorch");
  }
  const std::string name =
      options.name.empty() ? ModelTypeNameOf(options.file) : options.name;
  const Result<parser::Name> read = parser::ParseName(name);
  if (!read.ok()) {
    return read.status().MovedTo({}).Because(fmt::format("the model type's name '{}'", name));
  }
  const ModelFile file = SplitClass(options.file);
  ASSIGN_OR_RETURN(std::string content, ReadFile(file.path));
  NameClass(name, file.class_name, &content);
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
