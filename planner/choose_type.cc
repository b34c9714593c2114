#include "planner/choose_type.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/letter_case.h"
#include "catalog/data_source.h"
#include "planner/column_spec.h"
#include "planner/column_target.h"
#include "planner/derive.h"
#include "planner/free_text.h"
#include "planner/grouped_number.h"

namespace sluice::planner {
namespace {

using models::ModelFamily;
using models::ModelType;

// XGBoost holds a byte per value: five million rows of twenty columns take 100 MB.
constexpr int64_t kMaxTreeRows = 5'000'000;
// With so many values a text column is no longer split well by trees, which see hashes of them.
constexpr double kHugeVocabulary = 50'000;
constexpr int64_t kHugeVocabularyRows = 1'000'000;

bool RequestsNetwork(const parser::TrainStatement& statement) {
  for (const parser::ColumnClause& clause : statement.columns) {
    for (const parser::Expression& column : clause.columns) {
      const Result<ColumnSpec> spec = ReadColumn(column);
      if (spec.ok() &&
          (spec->kind == ColumnSpec::Kind::kEmbedding || spec->kind == ColumnSpec::Kind::kCross)) {
        return true;
      }
    }
  }
  return false;
}

const ModelType* Type(std::string_view name) {
  const ModelType* type = models::FindModelType(name);
  SLUICE_CHECK(type != nullptr, fmt::format("the registry has no {}", name));
  return type;
}

// Whether the attribute has an effect when training a model of this type.
bool Accepts(const ModelType& type, const parser::Attribute& attribute) {
  const models::AttributeSpec* spec = models::FindAttribute(type, attribute.name.text);
  if (spec == nullptr || spec->without_effect) {
    return false;
  }
  // What libxgboost trains keeps none.
  return type.family != ModelFamily::kTrees || type.name == "xgboost.gbtree" ||
         spec->name != "engine.checkpoint_dir";
}

bool Knows(const ModelType& type, const parser::Attribute& attribute) {
  return models::FindAttribute(type, attribute.name.text) != nullptr;
}

// The types that may be chosen, in order of preference.
std::vector<const ModelType*> Candidates(bool classification, bool wide_first, bool linear_first) {
  std::vector<const ModelType*> types = {
      Type("xgboost.gbtree"),
      Type(classification ? "DNNClassifier" : "DNNRegressor"),
      Type(classification ? "DNNLinearCombinedClassifier" : "DNNLinearCombinedRegressor"),
      Type(classification ? "LinearClassifier" : "LinearRegressor"),
      Type("xgboost.dart"),
      Type("xgboost.gblinear")};
  if (wide_first) {
    std::rotate(types.begin(), types.begin() + 2, types.begin() + 3);
  }
  if (linear_first) {
    const auto linear = std::find(types.begin(), types.end(),
                                  Type(classification ? "LinearClassifier" : "LinearRegressor"));
    std::rotate(types.begin(), linear, linear + 1);
  }
  return types;
}

// What the chosen type must support. Attributes and targets that no type knows are reported later.
class Demands {
 public:
  Demands(const parser::TrainStatement& statement, const std::vector<const ModelType*>& types)
      : statement_(statement), network_(RequestsNetwork(statement)) {
    for (const parser::ColumnClause& clause : statement.columns) {
      const bool known = std::any_of(types.begin(), types.end(), [&](const ModelType* type) {
        return PartOfTarget(clause, type).ok();
      });
      if (clause.target && known) {
        targets_.push_back(&clause);
      }
    }
    for (const parser::Attribute& attribute : statement.attributes) {
      const auto any = [&](bool (*has)(const ModelType&, const parser::Attribute&)) {
        return std::any_of(types.begin(), types.end(),
                           [&](const ModelType* type) { return has(*type, attribute); });
      };
      if (any(Accepts)) {
        demands_.push_back({&attribute, Accepts});
      } else if (any(Knows)) {
        demands_.push_back({&attribute, Knows});
      }
    }
  }

  bool MetBy(const ModelType& type) const {
    if (network_ && type.family == ModelFamily::kTrees) {
      return false;
    }
    const bool targets = std::all_of(targets_.begin(), targets_.end(), [&](const auto* clause) {
      return PartOfTarget(*clause, &type).ok();
    });
    return targets && std::all_of(demands_.begin(), demands_.end(), [&](const Demand& demand) {
             return demand.met(type, *demand.attribute);
           });
  }

  // Lists each attribute that not every type has, with the types that have it; reported at the last
  // one.
  Status Conflict(const std::vector<const ModelType*>& types) const {
    std::vector<std::string> lines;
    std::vector<std::string> names;
    Span span = statement_.span;
    const auto add = [&](const std::string& what, Span place, const auto& has) {
      std::vector<std::string> owners;
      for (const ModelType* type : types) {
        if (has(*type)) {
          owners.push_back(type->name);
        }
      }
      if (owners.size() < types.size()) {
        names.push_back(what);
        lines.push_back(fmt::format("{}: {}", what, fmt::join(owners, ", ")));
        span = place;
      }
    };
    if (network_) {
      add("EMBEDDING or CROSS", statement_.columns.front().span,
          [](const ModelType& type) { return type.family != ModelFamily::kTrees; });
    }
    for (const parser::ColumnClause* clause : targets_) {
      add("FOR " + clause->target->text, clause->target->span,
          [&](const ModelType& type) { return PartOfTarget(*clause, &type).ok(); });
    }
    for (const Demand& demand : demands_) {
      add(demand.attribute->name.text, demand.attribute->name.span,
          [&](const ModelType& type) { return demand.met(type, *demand.attribute); });
    }
    return InvalidArgument(fmt::format("no model type has all of this: {}", fmt::join(names, ", ")))
        .At(span)
        .Detail(fmt::format("{}", fmt::join(lines, "; ")))
        .Hint("leave some of it out, or name the model type: TO TRAIN type WITH ...");
  }

 private:
  struct Demand {
    const parser::Attribute* attribute;
    bool (*met)(const ModelType&, const parser::Attribute&);
  };
  const parser::TrainStatement& statement_;
  bool network_;
  std::vector<const parser::ColumnClause*> targets_;  // COLUMN ... FOR
  std::vector<Demand> demands_;
};

}  // namespace

std::vector<std::string> Identifiers(const Schema& schema, const std::string& label,
                                     const catalog::SelectStatistics& statistics) {
  constexpr double kMinIdentifiers = 100;
  constexpr double kMinRowsPerIdentifier = 5;
  std::vector<std::string> names;
  for (size_t i = 0; i < schema.columns.size(); ++i) {
    const catalog::ColumnStatistics& column = statistics.columns[i];
    if (schema.columns[i].name != label && schema.columns[i].type == DataType::kInt64 &&
        NamesACategory(schema.columns[i].name) && column.distinct >= kMinIdentifiers &&
        static_cast<double>(statistics.rows) >= kMinRowsPerIdentifier * column.distinct) {
      names.push_back(schema.columns[i].name);
    }
  }
  return names;
}

Result<ModelChoice> ChooseModelType(const parser::TrainStatement& statement,
                                    const std::string& label, bool classification,
                                    double label_values, const Schema& schema,
                                    const catalog::SelectStatistics& statistics) {
  double vocabulary = 0;
  for (const catalog::ColumnStatistics& column : statistics.columns) {
    if (!column.has_range) {
      vocabulary = std::max(vocabulary, column.distinct);
    }
  }
  // A table of words has thousands of columns, each with a little information: a linear model can
  // add it up, a tree has no room for it.
  size_t texts = 0;
  for (size_t i = 0; i < schema.columns.size(); ++i) {
    texts += schema.columns[i].type == DataType::kText && schema.columns[i].name != label &&
                     IsFreeText(InspectText(TextsOf(statistics.sample, i)), statistics.columns[i],
                                static_cast<double>(statistics.rows))
                 ? 1
                 : 0;
  }
  const bool words = texts > 0 && 2 * texts >= schema.columns.size() - 1;
  // Which pairs occur (a user and a film) is learnt by embeddings, but not by trees.
  const bool pairs = Identifiers(schema, label, statistics).size() >= 2;
  const bool large = statistics.rows > kMaxTreeRows ||
                     (statistics.rows > kHugeVocabularyRows && vocabulary > kHugeVocabulary);
  const std::vector<const ModelType*> types = Candidates(classification, large || pairs, words);
  const Demands demands(statement, types);
  const auto found = std::find_if(types.begin(), types.end(),
                                  [&](const ModelType* type) { return demands.MetBy(*type); });
  if (found == types.end()) {
    return demands.Conflict(types);
  }
  const ModelType* type = *found;
  const std::string shape = fmt::format(
      "{} rows, {} column{}, {}", GroupDigits(statistics.rows), statistics.columns.size() - 1,
      statistics.columns.size() == 2 ? "" : "s",
      classification ? fmt::format("{} classes of {}", static_cast<int64_t>(label_values), label)
                     : fmt::format("{} is a number", label));
  const bool trees = type->family == ModelFamily::kTrees;
  const std::string why =
      found == types.begin() && words ? ", mostly free text, whose words it learns"
      : found == types.begin() && pairs
          ? ", and identifiers that meet each other, of which embeddings learn"
      : found == types.begin() && large ? ", more than trees hold in memory well"
      : found == types.begin()          ? ""
      : trees                           ? ", and it asks for what only this type has"
                                        : ", and it asks for what only networks have";
  const std::string other = trees && type == types.front()
                                ? fmt::format("{} WITH model.hidden_units=[64, 32]",
                                              classification ? "DNNClassifier" : "DNNRegressor")
                                : "xgboost.gbtree";
  std::vector<const ModelType*> open;
  const bool anything = demands.MetBy(*Type("xgboost.gbtree")) &&
                        demands.MetBy(*Type("DNNClassifier")) &&
                        demands.MetBy(*Type("DNNLinearCombinedClassifier")) &&
                        demands.MetBy(*Type("LinearClassifier"));
  if (anything) {
    open = {Type(classification ? "LinearClassifier" : "LinearRegressor"), Type("xgboost.gbtree"),
            Type(classification ? "DNNClassifier" : "DNNRegressor")};
    if (pairs) {
      open.push_back(Type(classification ? "FMClassifier" : "FMRegressor"));
    }
    if (large || pairs) {
      open.push_back(types.front());
    }
    std::erase_if(open, [&](const ModelType* one) { return !demands.MetBy(*one); });
  }
  return ModelChoice{type,
                     fmt::format("{} was chosen: {}{}; another: TO TRAIN {} LABEL {} INTO ...",
                                 type->name, shape, why, other, label),
                     shape, std::move(open)};
}

}  // namespace sluice::planner
