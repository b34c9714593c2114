#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace sluice::k8s {

struct Taint {
  std::string key, value;
  std::string effect;  // NoSchedule, PreferNoSchedule, NoExecute

  bool operator==(const Taint&) const = default;
};

// What a scheduler compares a pod's rules with.
struct NodeLabels {
  std::string name;
  std::map<std::string, std::string> labels;
  std::vector<Taint> taints;

  bool operator==(const NodeLabels&) const = default;
};

// On which nodes a pod may run: its nodeSelector, required node affinity and tolerations.
// What depends on other pods or on volumes (pod affinity, spread constraints, host ports, claims)
// is not judged; HasFurtherRules says whether there is any. Pure.
class NodeRules {
 public:
  NodeRules() = default;  // of a pod without any rules

  // `pod`: its JSON. An error if it is not an object.
  static Result<NodeRules> Of(std::string_view pod);

  bool Admits(const NodeLabels& node) const;
  bool HasFurtherRules() const { return further_rules_; }
  // The same for pods with the same rules.
  const std::string& key() const { return key_; }

 private:
  enum class Operator { kIn, kNotIn, kExists, kDoesNotExist, kGt, kLt, kUnknown };
  struct Expression {
    std::string key;
    Operator op = Operator::kUnknown;
    std::vector<std::string> values;
    bool field = false;  // metadata.name, instead of a label
  };
  struct Toleration {
    std::string key, value, effect;
    bool exists = false;
  };
  struct Reader;

  static bool Holds(const Expression& expression, const NodeLabels& node);
  bool Tolerates(const Taint& taint) const;

  std::map<std::string, std::string> selector_;
  std::optional<std::vector<std::vector<Expression>>> terms_;  // one must hold, as a whole
  std::vector<Toleration> tolerations_;
  bool further_rules_ = false;
  std::string key_;
};

}  // namespace sluice::k8s
