#include "planner/compile/python_models.h"

#include <fmt/core.h>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <utility>

#include <unistd.h>

#include "catalog/model_record.h"
#include "models/imports/import_network.h"
#include "models/model.pb.h"
#include "planner/compile/check_rows_internal.h"
#include "planner/compile/compile_program_internal.h"

namespace sluice::planner {
namespace {

using JsonWriter = rapidjson::Writer<rapidjson::StringBuffer>;

constexpr size_t kMaxSourceBytes = size_t{1} << 20;

void Write(std::string_view text, JsonWriter* json) {
  json->String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
}

void Write(const char* name, std::string_view text, JsonWriter* json) {
  json->Key(name);
  Write(text, json);
}

// Line and column count from 1; column 0: the whole line. Invalid: there is no such line.
Span PlaceIn(std::string_view text, int64_t line, int64_t column) {
  size_t begin = 0;
  for (int64_t l = 1; l < line && begin != std::string_view::npos; ++l) {
    begin = text.find('\n', begin);
    begin = begin == std::string_view::npos ? begin : begin + 1;
  }
  if (line < 1 || begin == std::string_view::npos) {
    return {};
  }
  const size_t end = std::min(text.find('\n', begin), text.size());
  size_t at = begin + static_cast<size_t>(std::max<int64_t>(column - 1, 0));
  if (column == 0) {
    at = std::min(text.find_first_not_of(" \t", begin), end);
  }
  at = std::min(at, end);
  return {static_cast<int64_t>(at), static_cast<int64_t>(std::max(end, at + 1))};
}

// The error that the program has answered, at its place in the source.
Status ErrorOf(const rapidjson::Value& error, const PythonSource& source) {
  const auto text = [&](const char* name) {
    const auto member = error.FindMember(name);
    return member != error.MemberEnd() && member->value.IsString()
               ? std::string(member->value.GetString(), member->value.GetStringLength())
               : std::string();
  };
  const auto number = [&](const char* name) {
    const auto member = error.FindMember(name);
    return member != error.MemberEnd() && member->value.IsInt() ? member->value.GetInt() : 0;
  };
  Status status = InvalidArgument(text("message"));
  std::string hint = text("hint");
  std::vector<std::string> names;
  if (const auto list = error.FindMember("names");
      list != error.MemberEnd() && list->value.IsArray()) {
    for (const rapidjson::Value& name : list->value.GetArray()) {
      names.emplace_back(name.IsString() ? name.GetString() : "");
    }
  }
  if (const auto nearest = NearestName(source.name, names)) {
    hint = fmt::format("did you mean '{}'?", *nearest);
  }
  if (!hint.empty()) {
    status = std::move(status).Hint(std::move(hint));
  }
  const Span place = PlaceIn(source.text, number("line"), number("column"));
  return place.valid() ? std::move(status).At(place) : status;
}

Status WithPrinted(Status status, const std::string& printed) {
  constexpr size_t kShown = 600;
  std::string end = printed.substr(printed.size() - std::min(kShown, printed.size()));
  while (!end.empty() && end.back() == '\n') {
    end.pop_back();
  }
  return end.empty() ? status : std::move(status).Detail("it printed: " + end);
}

Status HowItEnded(const ProgramEnd& end, const ProgramLimits& limits) {
  switch (end.how) {
    case ProgramEnd::How::kOutOfTime:
      return Status(Code::kResourceExhausted,
                    fmt::format("Python was not done with the model within {:.3g} seconds",
                                limits.seconds))
          .SqlState("54000")
          .Hint("is there a loop without an end? Files and downloads do not belong in a model");
    case ProgramEnd::How::kPrintedTooMuch:
      return Status(Code::kResourceExhausted,
                    fmt::format("Python printed more than {} MiB while it compiled the model",
                                limits.output_bytes >> 20))
          .SqlState("54000")
          .Hint("leave out what prints");
    case ProgramEnd::How::kExited:
    case ProgramEnd::How::kKilled:
      break;
  }
  const bool memory = end.how == ProgramEnd::How::kKilled &&
                      (end.code == SIGKILL || end.code == SIGSEGV || end.code == SIGABRT);
  const Status status =
      InvalidArgument(fmt::format("Python ended ({} {}) before the model was compiled",
                                  end.how == ProgramEnd::How::kExited ? "exit code" : "signal",
                                  end.code))
          .Hint(memory ? fmt::format("perhaps for want of memory: it has {} GiB",
                                     limits.memory_bytes >> 30)
                       : "a model neither exits nor starts processes");
  return WithPrinted(status, end.printed);
}

// The whole answer, whose JSON has no error.
Result<std::string> Ask(const PythonSource& source, const std::string& request,
                        const PythonOptions& options) {
  if (!options.allowed) {
    return Status(Code::kPermissionDenied, "models in Python are not compiled here")
        .SqlState("42501")
        .Hint(
            "a gateway does so after `serve --python-models`, sluice sql --source always; or "
            "export the model as an ONNX file");
  }
  if (access(options.program.c_str(), X_OK) != 0) {
    return FailedPrecondition(fmt::format("there is no Python at {}", options.program))
        .Hint(source.keras
                  ? "apt-get install python3 and pip install keras tensorflow, or --python "
                    "names another; Keras's JSON (model.to_json()) or an ONNX file needs "
                    "neither"
                  : "apt-get install python3-torch, or --python names another; an ONNX "
                    "file or Keras's JSON needs neither");
  }
  ASSIGN_OR_RETURN(ProgramEnd end,
                   RunChildProgram({options.program, "-I", "-c", std::string(CompileProgram())},
                                   request, options.limits, options.stop));
  rapidjson::Document document;
  const size_t line = end.answer.find('\n');
  const bool whole = line != std::string::npos &&
                     !document
                          .Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseNanAndInfFlag>(
                              end.answer.data(), line)
                          .HasParseError() &&
                     document.IsObject();
  if (!whole) {
    return HowItEnded(end, options.limits);
  }
  const rapidjson::Value& answer = document;
  const auto error = answer.FindMember("error");
  if (error != answer.MemberEnd() && error->value.IsObject()) {
    return ErrorOf(error->value, source);
  }
  const auto bytes = answer.FindMember("bytes");
  if (bytes == answer.MemberEnd() || !bytes->value.IsUint64() ||
      bytes->value.GetUint64() != end.answer.size() - line - 1) {
    return HowItEnded(end, options.limits);
  }
  return std::move(end.answer);
}

void WriteAttribute(const models::Attribute& attribute, JsonWriter* json) {
  constexpr std::string_view kPrefix = "model.";
  Write(std::string_view(attribute.name()).substr(kPrefix.size()), json);
  switch (attribute.value_case()) {
    case models::Attribute::kFlag:
      json->Bool(attribute.flag());
      break;
    case models::Attribute::kInteger:
      json->Int64(attribute.integer());
      break;
    case models::Attribute::kNumber:
      json->Double(attribute.number());
      break;
    case models::Attribute::kText:
      Write(attribute.text(), json);
      break;
    case models::Attribute::kTexts:
      json->StartArray();
      for (const std::string& text : attribute.texts().values()) {
        Write(text, json);
      }
      json->EndArray();
      break;
    default:
      json->StartArray();
      for (const double number : attribute.numbers().values()) {
        constexpr double kExact = 9e15;
        if (number ==
            static_cast<double>(static_cast<int64_t>(std::clamp(number, -kExact, kExact)))) {
          json->Int64(static_cast<int64_t>(number));  // layers have whole numbers of units
        } else {
          json->Double(number);
        }
      }
      json->EndArray();
  }
}

void WriteUse(const PythonSource& source, const PythonModelUse& use, JsonWriter* json) {
  Write("mode", "compile", json);
  Write("language", source.keras ? "keras" : "pytorch", json);
  Write("source", source.text, json);
  Write("name", source.name, json);
  json->Key("outputs");
  json->Int64(use.outputs);
  json->Key("seed");
  json->Uint64(use.seed >> 1);  // torch's seeds are signed
  json->Key("loss");
  json->Bool(use.own_loss);
  const models::LabelPlan::Kind label = use.features.label().kind();
  Write("label",
        label == models::LabelPlan::CLASS    ? "class"
        : label == models::LabelPlan::VECTOR ? "vector"
                                             : "number",
        json);
  json->Key("attributes");
  json->StartObject();
  for (const models::Attribute* attribute : use.attributes) {
    WriteAttribute(*attribute, json);
  }
  json->EndObject();
  json->Key("features");
  json->StartArray();
  for (const FeatureForPython& feature : FeaturesForPython(use.features)) {
    json->StartObject();
    Write("name", feature.feature->name(), json);
    Write("kind", feature.kind, json);
    for (const auto& [name, number] :
         {std::pair("width", feature.width), std::pair("buckets", feature.buckets),
          std::pair("length", feature.length)}) {
      json->Key(name);
      json->Uint(number);
    }
    json->EndObject();
  }
  json->EndArray();
}

// "node '/CumSum, line 10' (CumSum): ..." is of line 10 of the source; 0: of no line.
int64_t LineOfNode(std::string_view message) {
  constexpr std::string_view kLine = ", line ";
  message = message.substr(std::min(message.find("node '"), message.size()));
  const size_t at = message.find(kLine);
  int64_t line = 0;
  if (at < message.find("' (")) {
    std::from_chars(message.data() + at + kLine.size(), message.data() + message.size(), line);
  }
  return line;
}

}  // namespace

Result<std::string> DescribePythonModel(const PythonSource& source, const PythonOptions& options) {
  if (source.text.size() > kMaxSourceBytes) {
    return InvalidArgument(
        fmt::format("a source of {} bytes: at most {}", source.text.size(), kMaxSourceBytes));
  }
  rapidjson::StringBuffer buffer;
  JsonWriter json(buffer);
  json.StartObject();
  Write("mode", "describe", &json);
  Write("language", source.keras ? "keras" : "pytorch", &json);
  Write("source", source.text, &json);
  Write("name", source.name, &json);
  json.EndObject();
  ASSIGN_OR_RETURN(std::string answer, Ask(source, buffer.GetString(), options));
  answer.resize(answer.find('\n'));
  return answer;
}

std::string KeyOfPythonModel(const PythonSource& source, const PythonModelUse& use,
                             std::string_view owner, std::string_view framework) {
  rapidjson::StringBuffer buffer;
  JsonWriter json(buffer);
  json.StartObject();
  Write("owner", owner, &json);
  Write("framework", framework, &json);
  Write("program", CompileProgram(), &json);
  WriteUse(source, use, &json);
  json.EndObject();
  return catalog::Sha256Hex(buffer.GetString());
}

Result<std::string> CompilePythonModel(const PythonSource& source, const PythonModelUse& use,
                                       const PythonOptions& options) {
  ASSIGN_OR_RETURN(
      const auto transform,
      models::FeatureTransform::Make(use.features, models::FeatureTransform::Target::kNetwork));
  ASSIGN_OR_RETURN(const std::vector<models::FeatureBatch> rows, MakeCheckRows(use.features));
  rapidjson::StringBuffer buffer;
  JsonWriter json(buffer);
  json.StartObject();
  WriteUse(source, use, &json);
  json.Key("batches");
  const std::string batches = CheckRowsAsJson(rows, use.features, *transform);
  json.RawValue(batches.data(), batches.size(), rapidjson::kArrayType);
  json.EndObject();
  ASSIGN_OR_RETURN(std::string compiled, Ask(source, buffer.GetString(), options));
  if (source.keras) {  // nothing was traced: the JSON says what the model computes
    RETURN_IF_ERROR(models::CheckImport({models::kKerasInPython, compiled, {}}));
    return compiled;
  }
  const Status agrees = CheckAgainstModule(compiled, use.features, use.seed, rows);
  if (!agrees.ok()) {
    const Span place = PlaceIn(source.text, LineOfNode(agrees.message()), 0);
    return place.valid() ? agrees.MovedTo(place) : agrees;
  }
  return compiled;
}

}  // namespace sluice::planner
