#include "parser/printer.h"

#include <fmt/core.h>

#include <string_view>

#include "base/value.h"
#include "parser/quoting.h"

namespace sluice::parser {
namespace {

std::string PrintParts(const Name& name, std::string (*quote)(std::string_view)) {
  if (!name.quoted) {
    return name.text;
  }
  std::string text;
  for (size_t i = 0; i < name.parts.size(); ++i) {
    text += i == 0 ? "" : ".";
    text += name.IsQuoted(i) ? quote(name.parts[i]) : name.parts[i];
  }
  return text;
}

std::string PrintName(const Name& name) {
  return PrintParts(name, QuoteName);
}

template <typename Items, typename PrintItem>
std::string Join(const Items& items, PrintItem print) {
  std::string text;
  for (const auto& item : items) {
    text += (text.empty() ? "" : ", ") + print(item);
  }
  return text;
}

std::string PrintExpressions(const std::vector<Expression>& expressions) {
  return Join(expressions, [](const Expression& item) { return Print(item); });
}

std::string PrintAttributes(const std::vector<Attribute>& attributes) {
  return Join(attributes, [](const Attribute& attribute) {
    return fmt::format("{} = {}", PrintParts(attribute.name, BackquoteName),
                       Print(attribute.value));
  });
}

std::string PrintColumns(const std::vector<ColumnClause>& clauses) {
  std::string text;
  for (const ColumnClause& clause : clauses) {
    text += " COLUMN " + PrintExpressions(clause.columns);
    text += clause.target ? " FOR " + PrintName(*clause.target) : "";
  }
  return text;
}

std::string PrintDouble(double value) {
  std::string text = FormatDouble(value);
  // A double must be parsed back as a double: 1 is an integer.
  return text.find_first_of(".eE") == std::string::npos ? text + ".0" : text;
}

std::string With(const std::vector<Attribute>& attributes) {
  return attributes.empty() ? "" : " WITH " + PrintAttributes(attributes);
}

std::string Optional(std::string_view keyword, const std::optional<Name>& name) {
  return name ? fmt::format(" {} {}", keyword, PrintName(*name)) : "";
}

struct StatementPrinter {
  std::string operator()(const PlainStatement& plain) const { return plain.text; }

  std::string operator()(const TrainStatement& train) const {
    if (train.create_form) {
      return CreateModel(train);
    }
    return train.select.text + " TO TRAIN" +
           (train.model_type ? " " + PrintName(*train.model_type) : "") +
           Optional("LABEL", train.label) + With(train.attributes) + PrintColumns(train.columns) +
           (train.base_model ? " USING " + Print(*train.base_model) : "") + " INTO " +
           Print(train.into);
  }

  std::string operator()(const PredictStatement& predict) const {
    return predict.select.text + " TO PREDICT" +
           (predict.target ? " " + PrintName(*predict.target) : "") + With(predict.attributes) +
           " USING " + Print(predict.model);
  }

  std::string operator()(const EvaluateStatement& evaluate) const {
    return evaluate.select.text + " TO EVALUATE " + Print(evaluate.model) +
           With(evaluate.attributes) + Optional("LABEL", evaluate.label) +
           Optional("INTO", evaluate.into);
  }

  std::string operator()(const ModelReportStatement& report) const {
    return report.select.text + " TO EXPLAIN " + Print(report.model) + With(report.attributes) +
           Optional("USING", report.explainer) + Optional("INTO", report.into);
  }

  std::string operator()(const RunStatement& run) const {
    return run.select.text + " TO RUN " + PrintName(run.image) +
           (run.command.empty() ? "" : " CMD " + Join(run.command, QuoteString)) +
           (run.into.empty() ? "" : " INTO " + Join(run.into, PrintName));
  }

  std::string operator()(const OptimizeStatement& optimize) const {
    const auto constraint = [](const OptimizeStatement::Constraint& item) {
      return Print(item.expression) + Optional("GROUP BY", item.group_by);
    };
    return optimize.select.text + (optimize.maximize ? " TO MAXIMIZE " : " TO MINIMIZE ") +
           Print(optimize.objective) +
           (optimize.constraints.empty()
                ? ""
                : " CONSTRAINT " + Join(optimize.constraints, constraint)) +
           With(optimize.attributes) + Optional("USING", optimize.solver) + " INTO " +
           PrintName(optimize.into);
  }

  std::string operator()(const ShowStatement& show) const {
    using What = ShowStatement::What;
    switch (show.what) {
      case What::kModels:
        return "SHOW MODELS";
      case What::kModel:
        return "SHOW MODEL " + Print(*show.model);
      case What::kTrain:
        return "SHOW TRAIN " + Print(*show.model);
      case What::kModelTypes:
        return "SHOW MODEL TYPES";
      case What::kJobs:
        return show.limit ? fmt::format("SHOW JOBS LIMIT {}", *show.limit)
               : show.all ? "SHOW JOBS ALL"
                          : "SHOW JOBS";
      case What::kCluster:
        return "SHOW CLUSTER";
      case What::kJob:
        break;
    }
    return fmt::format("SHOW JOB {}", show.job);
  }

  std::string operator()(const DescribeStatement& describe) const {
    return describe.model_type ? "DESCRIBE MODEL TYPE " + PrintName(*describe.model_type)
                               : "DESCRIBE MODEL " + Print(*describe.model);
  }

  std::string operator()(const CreateModelTypeStatement& create) const {
    // The tag is one that the body does not have.
    std::string tag = "$$";
    for (int k = 0; create.body.find(tag) != std::string::npos; ++k) {
      tag = fmt::format("$body{}$", k);
    }
    return fmt::format("CREATE {}MODEL TYPE {} LANGUAGE {} AS {}{}{}",
                       create.or_replace ? "OR REPLACE " : "", Print(create.type),
                       PrintName(create.language), tag, create.body, tag);
  }

  std::string operator()(const DropModelStatement& drop) const {
    return fmt::format("DROP MODEL {}{}{}", drop.type ? "TYPE " : "",
                       drop.if_exists ? "IF EXISTS " : "", Print(drop.model));
  }

  std::string operator()(const AlterModelStatement& alter) const {
    return "ALTER MODEL " + Print(alter.model) +
           (alter.promote  ? fmt::format(" PROMOTE {}", *alter.promote)
            : alter.rename ? " RENAME TO " + Print(*alter.rename)
                           : " ROLLBACK");
  }

  std::string operator()(const ModelGrantStatement& grant) const {
    std::string roles;
    for (const Name& role : grant.roles) {
      roles += (roles.empty() ? "" : ", ") + PrintName(role);
    }
    const char* const rights = !grant.inspect ? "USAGE" : grant.usage ? "ALL" : "INSPECT";
    return fmt::format("{} {} ON MODEL {}{} {} {}", grant.revoke ? "REVOKE" : "GRANT", rights,
                       grant.type ? "TYPE " : "", Print(grant.model), grant.revoke ? "FROM" : "TO",
                       roles);
  }

  std::string operator()(const ExportModelStatement& out) const {
    return fmt::format("EXPORT MODEL {}{} TO {}", Print(out.model),
                       out.overwrite ? " OVERWRITE" : "", QuoteString(out.file));
  }

  std::string operator()(const ImportModelStatement& in) const {
    return fmt::format("IMPORT MODEL FROM {}{}", QuoteString(in.file),
                       in.into ? " INTO " + Print(*in.into) : "");
  }

  std::string operator()(const JobStatement& job) const {
    using Action = JobStatement::Action;
    return fmt::format("{} JOB {}{}",
                       job.action == Action::kCancel ? "CANCEL"
                       : job.action == Action::kWait ? "WAIT"
                                                     : "DROP",
                       job.if_exists ? "IF EXISTS " : "", job.job);
  }

  std::string operator()(const SetStatement& set) const {
    return set.reset ? "RESET " + PrintName(set.name)
                     : "SET " + PrintName(set.name) + " = " + Print(set.value);
  }

  std::string operator()(const ExplainPlanStatement& plan) const {
    const std::string_view options = plan.analyze && plan.json ? "(ANALYZE, FORMAT JSON) "
                                     : plan.analyze            ? "ANALYZE "
                                     : plan.json               ? "(FORMAT JSON) "
                                                               : "";
    return "EXPLAIN " + std::string(options) + std::visit(*this, plan.statement);
  }

  static std::string CreateModel(const TrainStatement& train) {
    std::string options;
    const auto add = [&options](const std::string& option) {
      options += (options.empty() ? "" : ", ") + option;
    };
    const auto value = [](const Name& name) {
      return name.quoted ? QuoteString(name.text) : name.text;
    };
    if (train.model_type) {
      add("model_type = " + value(*train.model_type));
    }
    if (train.label) {
      add("label = " + value(*train.label));
    }
    if (!train.attributes.empty()) {
      add(PrintAttributes(train.attributes));
    }
    std::string text = train.or_replace ? "CREATE OR REPLACE MODEL " : "CREATE MODEL ";
    text += Print(train.into);
    for (const ColumnClause& clause : train.columns) {
      text += fmt::format(" TRANSFORM ({})", PrintExpressions(clause.columns));
    }
    text += options.empty() ? "" : fmt::format(" OPTIONS ({})", options);
    return text + " AS " + train.select.text;
  }
};

std::string PrintUnary(const Expression& unary) {
  const std::string operand = Print(unary.args.front());
  // "--" would begin a comment.
  const bool apart = unary.text == "NOT" || operand.front() == '-' || operand.front() == '+';
  return unary.text + (apart ? " " : "") + operand;
}

bool SameName(const ModelName& left, const ModelName& right) {
  return left.schema == right.schema && left.name == right.name && left.version == right.version;
}

}  // namespace

std::string Print(const Statement& statement) {
  return std::visit(StatementPrinter(), statement);
}

std::string Print(const Expression& expression) {
  using Kind = Expression::Kind;
  const std::vector<Expression>& args = expression.args;
  switch (expression.kind) {
    case Kind::kStar:
      return "*";
    case Kind::kName:
      return IsBareName(expression.text, true) ? expression.text : BackquoteName(expression.text);
    case Kind::kNumber:
      return expression.text;
    case Kind::kString:
      return QuoteString(expression.text);
    case Kind::kList:
      return fmt::format("[{}]", PrintExpressions(args));
    case Kind::kCall:
      return fmt::format("{}({})", expression.text, PrintExpressions(args));
    case Kind::kUnary:
      return PrintUnary(expression);
    case Kind::kBinary:
      return fmt::format("{} {} {}", Print(args[0]), expression.text, Print(args[1]));
    case Kind::kParen:
      break;
  }
  return fmt::format("({})", Print(args.front()));
}

std::string Print(const AttributeValue& value) {
  struct ValuePrinter {
    std::string operator()(std::monostate) const { return "null"; }
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
    std::string operator()(int64_t integer) const { return fmt::format("{}", integer); }
    std::string operator()(double real) const { return PrintDouble(real); }
    std::string operator()(const std::string& text) const { return QuoteString(text); }
    std::string operator()(const AttributeValue::Word& word) const { return word.text; }
    std::string operator()(const AttributeValue::List& list) const {
      return fmt::format("[{}]",
                         Join(list, [](const AttributeValue& item) { return Print(item); }));
    }
    std::string operator()(const AttributeValue::Map& map) const {
      std::string text;
      for (size_t i = 0; i < map.keys.size(); ++i) {
        // A bare word would swallow the colon.
        const bool bare = std::holds_alternative<AttributeValue::Word>(map.keys[i].value);
        text += fmt::format("{}{}{}: {}", i == 0 ? "" : ", ", Print(map.keys[i]), bare ? " " : "",
                            Print(map.values[i]));
      }
      return "{" + text + "}";
    }
  };
  return std::visit(ValuePrinter(), value.value);
}

std::string Print(const ModelName& model) {
  const std::string version = model.version ? fmt::format(":{}", *model.version) : "";
  Name bare;
  bare.text = (model.schema.empty() ? "" : model.schema + ".") + model.name + version;
  if (IsBareName(bare.text, false)) {
    const Result<ModelName> same = ToModelName(bare);
    if (same.ok() && SameName(same.value(), model)) {
      return bare.text;
    }
  }
  return (model.schema.empty() ? "" : QuoteName(model.schema) + ".") + QuoteName(model.name) +
         version;
}

}  // namespace sluice::parser
