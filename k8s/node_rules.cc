#include "k8s/node_rules.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "k8s/json_internal.h"

namespace sluice::k8s {

using rapidjson::Value;

namespace {

std::optional<int64_t> IntegerOf(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number)
                                                                  : std::nullopt;
}

bool HasElements(const Value& value, std::initializer_list<std::string_view> path) {
  return ArrayIn(value, path).Size() > 0;
}

// Rules whose outcome depends on more than the node.
bool DependsOnMore(const Value& pod) {
  constexpr std::string_view kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
  if (HasElements(pod, {"spec", "affinity", "podAffinity", kRequired}) ||
      HasElements(pod, {"spec", "affinity", "podAntiAffinity", kRequired})) {
    return true;
  }
  for (const Value& spread : ArrayIn(pod, {"spec", "topologySpreadConstraints"})) {
    if (TextIn(spread, {"whenUnsatisfiable"}) != "ScheduleAnyway") {
      return true;
    }
  }
  for (const Value& volume : ArrayIn(pod, {"spec", "volumes"})) {
    if (FindIn(volume, {"persistentVolumeClaim"}) != nullptr ||
        FindIn(volume, {"ephemeral"}) != nullptr) {
      return true;
    }
  }
  for (const Value& container : ArrayIn(pod, {"spec", "containers"})) {
    for (const Value& port : ArrayIn(container, {"ports"})) {
      if (NumberIn(port, {"hostPort"}) != 0) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

struct NodeRules::Reader {
  static Operator OperatorOf(std::string_view name) {
    constexpr std::array<std::pair<std::string_view, Operator>, 6> kOperators = {
        {{"In", Operator::kIn},
         {"NotIn", Operator::kNotIn},
         {"Exists", Operator::kExists},
         {"DoesNotExist", Operator::kDoesNotExist},
         {"Gt", Operator::kGt},
         {"Lt", Operator::kLt}}};
    for (const auto& [known, op] : kOperators) {
      if (known == name) {
        return op;
      }
    }
    return Operator::kUnknown;
  }

  static void ReadExpressions(const Value& term, const char* list, bool field,
                              std::vector<Expression>& to) {
    for (const Value& each : ArrayIn(term, {list})) {
      Expression expression{
          std::string(TextIn(each, {"key"})), OperatorOf(TextIn(each, {"operator"})), {}, field};
      for (const Value& value : ArrayIn(each, {"values"})) {
        expression.values.emplace_back(TextIn(value, {}));
      }
      to.push_back(std::move(expression));
    }
  }
};

Result<NodeRules> NodeRules::Of(std::string_view json) {
  ASSIGN_OR_RETURN(const rapidjson::Document pod, ParseJsonObject(json, "a pod"));
  NodeRules rules;
  const Value* selector = FindIn(pod, {"spec", "nodeSelector"});
  if (selector != nullptr && selector->IsObject()) {
    for (const auto& label : selector->GetObject()) {
      rules.selector_.emplace(TextIn(label.name, {}), TextIn(label.value, {}));
    }
    rules.key_ += ToJson(*selector);
  }
  const Value* required = FindIn(
      pod, {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"});
  if (required != nullptr) {
    rules.terms_.emplace();
    for (const Value& term : ArrayIn(*required, {"nodeSelectorTerms"})) {
      std::vector<Expression> all;
      Reader::ReadExpressions(term, "matchExpressions", false, all);
      Reader::ReadExpressions(term, "matchFields", true, all);
      if (!all.empty()) {  // an empty term selects nothing
        rules.terms_->push_back(std::move(all));
      }
    }
    rules.key_ += "|" + ToJson(*required);
  }
  for (const Value& each : ArrayIn(pod, {"spec", "tolerations"})) {
    rules.tolerations_.push_back(
        {std::string(TextIn(each, {"key"})), std::string(TextIn(each, {"value"})),
         std::string(TextIn(each, {"effect"})), TextIn(each, {"operator"}) == "Exists"});
    rules.key_ += "|" + ToJson(each);
  }
  rules.further_rules_ = DependsOnMore(pod);
  return rules;
}

bool NodeRules::Holds(const Expression& expression, const NodeLabels& node) {
  const auto label = node.labels.find(expression.key);
  const std::string* value = nullptr;
  if (expression.field) {
    value = expression.key == "metadata.name" ? &node.name : nullptr;
  } else if (label != node.labels.end()) {
    value = &label->second;
  }
  const std::vector<std::string>& values = expression.values;
  const auto listed = [&] {
    return value != nullptr && std::find(values.begin(), values.end(), *value) != values.end();
  };
  const auto compared = [&](auto compare) {
    const std::optional<int64_t> own = value == nullptr ? std::nullopt : IntegerOf(*value);
    const std::optional<int64_t> limit = values.size() == 1 ? IntegerOf(values[0]) : std::nullopt;
    return own && limit && compare(*own, *limit);
  };
  switch (expression.op) {
    case Operator::kIn:
      return listed();
    case Operator::kNotIn:
      return !listed();
    case Operator::kExists:
      return value != nullptr;
    case Operator::kDoesNotExist:
      return value == nullptr;
    case Operator::kGt:
      return compared([](int64_t own, int64_t limit) { return own > limit; });
    case Operator::kLt:
      return compared([](int64_t own, int64_t limit) { return own < limit; });
    case Operator::kUnknown:
      break;
  }
  return false;
}

bool NodeRules::Tolerates(const Taint& taint) const {
  return std::any_of(tolerations_.begin(), tolerations_.end(), [&](const Toleration& toleration) {
    const bool effect = toleration.effect.empty() || toleration.effect == taint.effect;
    if (toleration.key.empty()) {
      return effect && toleration.exists;
    }
    return effect && toleration.key == taint.key &&
           (toleration.exists || toleration.value == taint.value);
  });
}

bool NodeRules::Admits(const NodeLabels& node) const {
  for (const auto& [key, value] : selector_) {
    const auto found = node.labels.find(key);
    if (found == node.labels.end() || found->second != value) {
      return false;
    }
  }
  if (terms_ && std::none_of(terms_->begin(), terms_->end(), [&](const auto& term) {
        return std::all_of(term.begin(), term.end(),
                           [&](const Expression& each) { return Holds(each, node); });
      })) {
    return false;
  }
  return std::all_of(node.taints.begin(), node.taints.end(), [this](const Taint& taint) {
    return taint.effect == "PreferNoSchedule" || Tolerates(taint);
  });
}

}  // namespace sluice::k8s
