#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "models/registry/registry.h"
#include "parser/ast.h"

namespace sluice::planner {

// One entry of a map, {'yes': 5, 'no': 1}.
struct NamedNumber {
  std::string name;
  double number = 0;
  Span name_span, number_span;
};

// A value of the type that its AttributeSpec asks for.
using TypedValue = std::variant<bool, int64_t, double, std::string, std::vector<double>,
                                std::vector<std::string>, std::vector<NamedNumber>>;

// A statement's attributes after typing: canonical names, values typed and in range. Reading an
// undeclared attribute is a bug; a declared one may lack a value.
class AttributeSet {
 public:
  struct Entry {
    const models::AttributeSpec* spec = nullptr;
    std::optional<TypedValue> value;  // the user's, else the default, if any
    bool written = false;             // by the user, possibly as null
    bool given = false;               // by the user, with a value
    Span value_span;
  };

  // Types `attributes` as `type` declares them. Every mistake is one diagnostic of the returned
  // status: unknown name (with the nearest one), given twice, wrong type, out of range, a required
  // one missing (reported at `place`). `set` has the correct ones even if there are errors.
  // `continues`: the training continues from a model, which supplies what is required.
  static Status Bind(const models::ModelType& type, Span place,
                     const std::vector<parser::Attribute>& attributes, bool continues,
                     AttributeSet* set);
  // The same for a statement without a model type ("predict").
  static Status Bind(const std::vector<models::AttributeSpec>& specs, std::string_view statement,
                     Span place, const std::vector<parser::Attribute>& attributes,
                     AttributeSet* set);

  bool Declared(std::string_view name) const { return entries_.find(name) != entries_.end(); }
  bool Given(std::string_view name) const;
  Span SpanOf(std::string_view name) const;  // of the value; invalid when not given

  std::optional<bool> Flag(std::string_view name) const;
  std::optional<int64_t> Integer(std::string_view name) const;
  std::optional<double> Number(std::string_view name) const;  // integers too
  std::optional<std::string> Text(std::string_view name) const;
  std::optional<std::vector<double>> Numbers(std::string_view name) const;
  std::optional<std::vector<std::string>> Texts(std::string_view name) const;
  std::optional<std::vector<NamedNumber>> NamedNumbers(std::string_view name) const;

  // "train.verbose: taken over from SQLFlow, no effect: ...", for each given attribute that has no
  // effect.
  std::vector<std::string> WithoutEffect() const;

  // In alphabetical order.
  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }

 private:
  Status BindAll(const std::vector<models::AttributeSpec>& specs,
                 const std::vector<parser::Attribute>& attributes,
                 const std::function<std::string(std::string_view)>& hint);
  Status CheckRequired(std::string_view owner, Span place) const;
  Status BindOne(const parser::Attribute& attribute, const models::AttributeSpec& spec);
  const TypedValue* Find(std::string_view name) const;

  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace sluice::planner
