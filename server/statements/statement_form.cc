#include "server/statements/statement_form.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>
#include <vector>

#include "parser/parser.h"
#include "parser/printer.h"

namespace sluice::server {
namespace {

// "a.b" as a name with parts; a text that no plain name could hold as one quoted name.
parser::Name MakeName(const std::string& text) {
  parser::Name name;
  name.text = text;
  name.quoted = std::any_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '.' &&
           (static_cast<unsigned char>(c) & 0x80U) == 0;
  });
  if (name.quoted) {
    name.parts = {text};
    return name;
  }
  for (size_t begin = 0; begin <= text.size();) {
    const size_t dot = std::min(text.find('.', begin), text.size());
    name.parts.push_back(text.substr(begin, dot - begin));
    begin = dot + 1;
  }
  return name;
}

// Reads a name as written in a statement, with quotes where it needs them.
Result<parser::Name> ReadName(const std::string& text, std::string_view flag) {
  Result<parser::Name> name = parser::ParseName(text);
  if (name.ok()) {
    return name;
  }
  return InvalidArgument(fmt::format("{}: cannot read the name '{}'", flag, text))
      .Hint("a name with blanks, dots or other signs is quoted: '\"Out Table\".y'");
}

// The parser reads the name, so that schema and version are recognised as in a statement.
Result<parser::ModelName> ReadModelName(const std::string& text, std::string_view flag) {
  const auto statements = parser::Parse("DESCRIBE MODEL " + text);
  if (statements.ok() && statements->size() == 1) {
    const auto* describe = std::get_if<parser::DescribeStatement>(&statements->front());
    if (describe != nullptr && describe->model) {
      return *describe->model;
    }
  }
  return InvalidArgument(fmt::format("{} must be the name of a model, not '{}'", flag, text))
      .Hint("[schema.]name[:version]");
}

// A table's name, or a whole SELECT (anything that contains a blank).
parser::Select MakeSelect(const std::string& data) {
  parser::Select select;
  const bool is_query = data.find_first_of(" \t\n") != std::string::npos;
  if (is_query) {
    select.text = data;
    return select;
  }
  select.text = "SELECT * FROM ";
  for (const std::string& part : MakeName(data).parts) {
    select.text += select.text.back() == ' ' ? "\"" : ".\"";
    for (const char c : part) {
      select.text += c;
      if (c == '"') {
        select.text += c;
      }
    }
    select.text += '"';
  }
  return select;
}

void AddAttribute(const std::string& name, parser::AttributeValue value,
                  std::vector<parser::Attribute>& attributes) {
  attributes.push_back({MakeName(name), std::move(value), {}});
}

void AddNumber(const std::string& name, const std::optional<int64_t>& number,
               std::vector<parser::Attribute>& attributes) {
  if (number) {
    AddAttribute(name, {*number, {}}, attributes);
  }
}

void AddOutput(const OutputForm& form, std::vector<parser::Attribute>& attributes) {
  if (form.replace) {
    AddAttribute("result.replace", {true, {}}, attributes);
  }
  if (form.append) {
    AddAttribute("result.append", {true, {}}, attributes);
  }
}

// "a=1; b=[2,3]": each part is read as the value in a SET statement, by the same parser.
Status AddParameters(const std::string& text, std::vector<parser::Attribute>& attributes) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(';', begin), text.size());
    const size_t name_at = text.find_first_not_of(" \t\n", begin);
    begin = end + 1;
    if (name_at >= end) {  // blank, or at the end (npos)
      continue;
    }
    const std::string part = text.substr(name_at, end - name_at);
    const auto statements = parser::Parse("SET sluice." + part);
    const auto* set = statements.ok() && statements->size() == 1
                          ? std::get_if<parser::SetStatement>(&statements->front())
                          : nullptr;
    if (set == nullptr) {
      return InvalidArgument(fmt::format("--model_params: cannot read '{}'", part))
          .Hint("name=value; name=value: hidden_units=[64,32]; dropout=0.1");
    }
    std::string name = set->name.text.substr(std::string_view("sluice.").size());
    if (name.find('.') == std::string::npos) {
      name.insert(0, "model.");
    }
    AddAttribute(name, set->value, attributes);
  }
  return OkStatus();
}

Status Require(const std::string& value, std::string_view flag, std::string_view what) {
  return value.empty() ? InvalidArgument(fmt::format("{} is missing: {}", flag, what)) : OkStatus();
}

}  // namespace

Result<std::string> TrainStatementText(const TrainForm& form) {
  RETURN_IF_ERROR(Require(form.training_data, "--training_data", "a table or a SELECT"));
  RETURN_IF_ERROR(Require(form.label, "--label", "the column to learn"));
  RETURN_IF_ERROR(Require(form.output, "--output", "the model to make"));
  parser::TrainStatement train;
  train.select = MakeSelect(form.training_data);
  if (!form.model_def.empty()) {
    train.model_type = MakeName(form.model_def);
  }
  RETURN_IF_ERROR(AddParameters(form.model_params, train.attributes));
  AddNumber("train.epoch", form.num_epochs, train.attributes);
  AddNumber("train.batch_size", form.minibatch_size, train.attributes);
  AddNumber("train.max_steps", form.max_step, train.attributes);
  AddNumber("engine.num_workers", form.num_workers, train.attributes);
  AddNumber("engine.num_ps", form.num_ps_pods, train.attributes);
  if (!form.validation_data.empty()) {
    AddAttribute("validation.select", {MakeSelect(form.validation_data).text, {}},
                 train.attributes);
  }
  train.label = MakeName(form.label);
  if (!form.base.empty()) {
    ASSIGN_OR_RETURN(train.base_model, ReadModelName(form.base, "--base"));
  }
  ASSIGN_OR_RETURN(train.into, ReadModelName(form.output, "--output"));
  return parser::Print(train);
}

Result<std::string> PredictStatementText(const PredictForm& form) {
  RETURN_IF_ERROR(Require(form.prediction_data, "--prediction_data", "a table or a SELECT"));
  RETURN_IF_ERROR(Require(form.model, "--model", "the model to use"));
  parser::PredictStatement predict;
  predict.select = MakeSelect(form.prediction_data);
  if (!form.output.empty()) {
    ASSIGN_OR_RETURN(predict.target, ReadName(form.output, "--output"));
  }
  AddOutput(form.output_table, predict.attributes);
  ASSIGN_OR_RETURN(predict.model, ReadModelName(form.model, "--model"));
  return parser::Print(predict);
}

Result<std::string> EvaluateStatementText(const EvaluateForm& form) {
  RETURN_IF_ERROR(Require(form.validation_data, "--validation_data", "a table or a SELECT"));
  RETURN_IF_ERROR(Require(form.model, "--model", "the model to evaluate"));
  parser::EvaluateStatement evaluate;
  evaluate.select = MakeSelect(form.validation_data);
  if (!form.label.empty()) {
    evaluate.label = MakeName(form.label);
  }
  if (!form.output.empty()) {
    ASSIGN_OR_RETURN(evaluate.into, ReadName(form.output, "--output"));
  }
  AddOutput(form.output_table, evaluate.attributes);
  ASSIGN_OR_RETURN(evaluate.model, ReadModelName(form.model, "--model"));
  return parser::Print(evaluate);
}

}  // namespace sluice::server
