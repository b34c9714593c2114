#include <fmt/core.h>

#include <algorithm>
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

constexpr size_t kStatementBytes = 1024;  // around the model

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

// A source in Python is of the framework that it imports first; "pytorch": of neither.
std::string LanguageOfPython(std::string_view source) {
  for (size_t begin = 0; begin < source.size();) {
    const size_t end = std::min(source.find('\n', begin), source.size());
    std::istringstream line(std::string(source.substr(begin, end - begin)));
    std::string word, module;
    line >> word >> module;
    module = module.substr(0, module.find_first_of(".,"));
    if ((word == "import" || word == "from") &&
        (module == "torch" || module == "keras" || module == "tensorflow")) {
      return module == "torch" ? "pytorch" : "keras";
    }
    begin = end + 1;
  }
  return "pytorch";
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

Result<ModelPushOptions> ModelOfZoo(const std::string& folder, const std::string& definition) {
  const std::filesystem::path zoo(folder);
  ModelPushOptions model;
  if (!ModelLanguageOf(definition).empty()) {
    model.file = (zoo / definition).string();
    return model;
  }
  const size_t dot = definition.rfind('.');
  if (dot == std::string::npos) {
    return InvalidArgument(
               fmt::format("--model_def '{}' names no model of the folder {}", definition, folder))
        .Hint(
            "my_models.WideNet is the class WideNet of its file my_models.py; net.onnx and "
            "net.json are files");
  }
  std::string module = definition.substr(0, dot);
  model.name = definition.substr(module.rfind('.') + 1);  // the module's own name; npos + 1 is 0
  std::replace(module.begin(), module.end(), '.', '/');
  model.file = (zoo / (module + ".py")).string() + ":" + definition.substr(dot + 1);
  return model;
}

Result<std::string> CreateModelTypeText(const ModelPushOptions& options) {
  std::string language = ModelLanguageOf(options.file);
  if (language.empty()) {
    return InvalidArgument(fmt::format("the end of {} says no language", options.file))
        .Hint(
            "net.onnx is an ONNX file, net.json is Keras's to_json(), net.py:Class is PyTorch, "
            "net.py:function of a file that imports keras is Keras");
  }
  const std::string name = options.name.empty() ? ModelTypeNameOf(options.file) : options.name;
  const Result<parser::Name> read = parser::ParseName(name);
  if (!read.ok()) {
    return read.status().MovedTo({}).Because(fmt::format("the model type's name '{}'", name));
  }
  const ModelFile file = SplitClass(options.file);
  ASSIGN_OR_RETURN(std::string content, ReadFile(file.path));
  NameClass(name, file.class_name, &content);
  if (language == "pytorch") {
    language = LanguageOfPython(content);
  }
  const std::string body = language == "onnx" ? InLines(EncodeBase64(content)) : content;
  if (body.size() + kStatementBytes > parser::kMaxScriptBytes) {
    return Status(Code::kResourceExhausted,
                  fmt::format("{} has {} bytes{}: a statement has at most {}", file.path,
                              content.size(), language == "onnx" ? ", more as base64" : "",
                              parser::kMaxScriptBytes))
        .SqlState("54000")
        .Hint(
            "values that are drawn anew need not be in the file: a class in PyTorch, or Keras's "
            "JSON, has none");
  }
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
