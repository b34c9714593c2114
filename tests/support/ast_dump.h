#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/value.h"
#include "parser/ast.h"

namespace sluice::parser {

// A statement as a tree of lines, with or without spans: two statements are equal if their trees
// without spans are. Strings are quoted as in Go: "a\"b".
class AstDump {
 public:
  explicit AstDump(bool spans) : spans_(spans) {}

  std::string Of(const Statement& statement) {
    std::visit([this](const auto& node) { Visit(node); }, statement);
    return std::move(text_);
  }

  static std::string Quote(std::string_view text) {
    std::string quoted = "\"";
    for (const char c : text) {
      if (c == '\n') {
        quoted += "\\n";
        continue;
      }
      if (c == '"' || c == '\\') {
        quoted += '\\';
      }
      quoted += c;
    }
    return quoted + '"';
  }

  // "3", "1.5", "'text'", "Word(Adam)", "[1, 2]"
  static std::string ValueText(const AttributeValue& value) {
    if (const auto* list = std::get_if<AttributeValue::List>(&value.value)) {
      std::string text;
      for (const AttributeValue& item : *list) {
        text += (text.empty() ? "" : ", ") + ValueText(item);
      }
      return "[" + text + "]";
    }
    if (const auto* word = std::get_if<AttributeValue::Word>(&value.value)) {
      return "Word(" + word->text + ")";
    }
    if (const auto* text = std::get_if<std::string>(&value.value)) {
      return Quote(*text);
    }
    if (const auto* real = std::get_if<double>(&value.value)) {
      return "double(" + FormatDouble(*real) + ")";
    }
    if (const auto* integer = std::get_if<int64_t>(&value.value)) {
      return fmt::format("{}", *integer);
    }
    if (const auto* flag = std::get_if<bool>(&value.value)) {
      return *flag ? "true" : "false";
    }
    return "null";
  }

 private:
  void Line(std::string_view label, Span span, const std::string& text = "") {
    this->text_.append(static_cast<size_t>(2 * indent_), ' ');
    this->text_ += label;
    if (spans_) {
      this->text_ += fmt::format(" [{},{})", span.begin, span.end);
    }
    this->text_ += (text.empty() ? "" : " ") + text + "\n";
  }
  void Flag(std::string_view label) {
    text_.append(static_cast<size_t>(2 * indent_), ' ');
    text_ += label;
    text_ += '\n';
  }
  template <typename Body>
  void Indented(Body body) {
    ++indent_;
    body();
    --indent_;
  }

  void One(std::string_view label, const Name& name) {
    std::string parts;
    for (size_t i = 0; i < name.parts.size(); ++i) {
      parts += i == 0 ? "" : ".";
      parts += name.IsQuoted(i) ? Quote(name.parts[i]) : name.parts[i];
    }
    Line(label, name.span, parts + (name.text.empty() ? " (empty)" : ""));
  }
  void One(std::string_view label, const ModelName& model) {
    std::string text = model.schema.empty() ? "" : "schema=" + Quote(model.schema) + " ";
    text += "name=" + Quote(model.name);
    text += model.version ? fmt::format(" version={}", *model.version) : "";
    Line(label, model.span, text);
  }
  void One(std::string_view label, const Select& select) {
    Line(label, select.span, Quote(select.text));
  }
  template <typename Node>
  void One(std::string_view label, const std::optional<Node>& node) {
    if (node) {
      One(label, *node);
    }
  }
  void One(std::string_view label, const std::vector<Attribute>& attributes) {
    for (const Attribute& attribute : attributes) {
      Line(label, attribute.span);
      Indented([&] {
        One("name", attribute.name);
        One("value", attribute.value);
      });
    }
  }
  void One(std::string_view label, const AttributeValue& value) {
    if (const auto* map = std::get_if<AttributeValue::Map>(&value.value)) {
      Line(label, value.span, "map");
      Indented([&] {
        for (size_t i = 0; i < map->keys.size(); ++i) {
          One("key", map->keys[i]);
          One("value", map->values[i]);
        }
      });
      return;
    }
    const auto* list = std::get_if<AttributeValue::List>(&value.value);
    if (list == nullptr) {
      Line(label, value.span, ValueText(value));
      return;
    }
    Line(label, value.span, "list");
    Indented([&] {
      for (const AttributeValue& item : *list) {
        One("item", item);
      }
    });
  }
  void One(std::string_view label, const Expression& expression) {
    constexpr std::string_view kKinds[] = {"star", "name",  "number", "string", "list",
                                           "call", "unary", "binary", "paren"};
    std::string text(kKinds[static_cast<int>(expression.kind)]);
    text += expression.text.empty() ? "" : " " + Quote(expression.text);
    Line(label, expression.span, text);
    Indented([&] {
      for (const Expression& argument : expression.args) {
        One("arg", argument);
      }
    });
  }
  void One(std::string_view label, const std::vector<ColumnClause>& clauses) {
    for (const ColumnClause& clause : clauses) {
      Line(label, clause.span);
      Indented([&] {
        for (const Expression& column : clause.columns) {
          One("column", column);
        }
        One("for", clause.target);
      });
    }
  }

  void Visit(const PlainStatement& plain) {
    Line("Plain", plain.span, Quote(plain.text));
    Indented([&] { Flag(plain.returns_rows ? "returns rows" : "returns no rows"); });
  }
  void Visit(const TrainStatement& train) {
    Line("Train", train.span);
    Indented([&] {
      if (train.create_form) {
        Flag(train.or_replace ? "create or replace" : "create");
      }
      One("select", train.select);
      One("model_type", train.model_type);
      One("attribute", train.attributes);
      One("columns", train.columns);
      One("label", train.label);
      One("using", train.base_model);
      One("into", train.into);
    });
  }
  void Visit(const PredictStatement& predict) {
    Line("Predict", predict.span);
    Indented([&] {
      One("select", predict.select);
      One("target", predict.target);
      One("attribute", predict.attributes);
      One("model", predict.model);
    });
  }
  void Visit(const EvaluateStatement& evaluate) {
    Line("Evaluate", evaluate.span);
    Indented([&] {
      One("select", evaluate.select);
      One("model", evaluate.model);
      One("attribute", evaluate.attributes);
      One("label", evaluate.label);
      One("into", evaluate.into);
    });
  }
  void Visit(const ModelReportStatement& report) {
    Line("ModelReport", report.span);
    Indented([&] {
      One("select", report.select);
      One("model", report.model);
      One("attribute", report.attributes);
      One("explainer", report.explainer);
      One("into", report.into);
    });
  }
  void Visit(const RunStatement& run) {
    Line("Run", run.span);
    Indented([&] {
      One("select", run.select);
      One("image", run.image);
      for (const std::string& word : run.command) {
        Flag("command " + Quote(word));
      }
      for (const Name& table : run.into) {
        One("into", table);
      }
    });
  }
  void Visit(const OptimizeStatement& optimize) {
    Line(optimize.maximize ? "Maximize" : "Minimize", optimize.span);
    Indented([&] {
      One("select", optimize.select);
      One("objective", optimize.objective);
      for (const OptimizeStatement::Constraint& constraint : optimize.constraints) {
        Line("constraint", constraint.span);
        Indented([&] {
          One("expression", constraint.expression);
          One("group_by", constraint.group_by);
        });
      }
      One("attribute", optimize.attributes);
      One("solver", optimize.solver);
      One("into", optimize.into);
    });
  }
  void Visit(const ShowStatement& show) {
    constexpr std::string_view kWhats[] = {"models", "model", "train",  "model types",
                                           "jobs",   "job",   "cluster"};
    Line("Show", show.span, std::string(kWhats[static_cast<int>(show.what)]));
    Indented([&] {
      One("model", show.model);
      if (show.what == ShowStatement::What::kJob) {
        Flag(fmt::format("job {}", show.job));
      }
      if (show.limit) {
        Flag(fmt::format("limit {}", *show.limit));
      }
      if (show.all) {
        Flag("all");
      }
    });
  }
  void Visit(const DescribeStatement& describe) {
    Line("Describe", describe.span);
    Indented([&] {
      One("model", describe.model);
      One("model_type", describe.model_type);
    });
  }
  void Visit(const DropModelStatement& drop) {
    Line(drop.type ? "DropModelType" : "DropModel", drop.span, drop.if_exists ? "if exists" : "");
    Indented([&] { One("model", drop.model); });
  }
  void Visit(const CreateModelTypeStatement& create) {
    Line("CreateModelType", create.span, create.or_replace ? "or replace" : "");
    Indented([&] {
      One("type", create.type);
      One("language", create.language);
      Line("body", create.body_span, create.body);
    });
  }
  void Visit(const AlterModelStatement& alter) {
    Line("AlterModel", alter.span,
         alter.promote  ? fmt::format("promote {}", *alter.promote)
         : alter.rename ? "rename"
                        : "rollback");
    Indented([&] {
      One("model", alter.model);
      One("to", alter.rename);
    });
  }
  void Visit(const ModelGrantStatement& grant) {
    Line(fmt::format("{}{}{}", grant.revoke ? "Revoke" : "Grant", grant.usage ? "Usage" : "",
                     grant.inspect ? "Inspect" : ""),
         grant.span);
    Indented([&] {
      One("model", grant.model);
      for (const Name& role : grant.roles) {
        One("role", role);
      }
    });
  }
  void Visit(const ExportModelStatement& out) {
    Line("ExportModel", out.span, out.overwrite ? "overwrite" : "");
    Indented([&] {
      One("model", out.model);
      Line("file", out.file_span, out.file);
    });
  }
  void Visit(const ImportModelStatement& in) {
    Line("ImportModel", in.span);
    Indented([&] {
      Line("file", in.file_span, in.file);
      One("into", in.into);
    });
  }
  void Visit(const JobStatement& job) {
    using Action = JobStatement::Action;
    Line(job.action == Action::kCancel ? "CancelJob"
         : job.action == Action::kWait ? "WaitJob"
         : job.if_exists               ? "DropJob if exists"
                                       : "DropJob",
         job.span, fmt::format("{}", job.job));
  }
  void Visit(const SetStatement& set) {
    Line(set.reset ? "Reset" : "Set", set.span);
    Indented([&] {
      One("name", set.name);
      One("value", set.value);
    });
  }
  void Visit(const ExplainPlanStatement& plan) {
    const std::string format = plan.json ? "json" : "text";
    Line("ExplainPlan", plan.span, plan.analyze ? "analyze " + format : format);
    Indented([&] { std::visit([this](const auto& node) { Visit(node); }, plan.statement); });
  }

  bool spans_;
  int indent_ = 0;
  std::string text_;
};

inline std::string Dump(const Statement& statement, bool spans) {
  return AstDump(spans).Of(statement);
}

inline bool EqualIgnoringSpans(const Statement& left, const Statement& right) {
  return Dump(left, false) == Dump(right, false);
}

}  // namespace sluice::parser
