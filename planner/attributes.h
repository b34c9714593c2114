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

// One of a map, {'yes': 5, 'no': 1}.
struct NamedNumber {
  std::string name;
  double number = 0;
  Span name_span, number_span;
};

// A value of the type that its AttributeSpec asks for.
using TypedValue = std::variant<bool, int64_t, double, std::string, std::vector<double>,
                                std::vector<std::string>, std::vector<NamedNumber>>;

// The attributes of one statement after typing: names canonical, values typed and in range.
// Reading one that is not declared is an error of ours; that a declared one has no value is normal.
class AttributeSet {
 public:
  struct Entry {
    const models::AttributeSpec* spec = nullptr;
    std::optional<TypedValue> value;  // the user's, else the default, else none
    bool written = false;             // by the user, be it as null
    bool given = false;               // by the user, with a value
    Span value_span;
  };

  // Types `attributes` against what `type` declares. Every mistake is one diagnostic of the
  // returned status: unknown name (with the nearest one), given twice, wrong type, out of range,
  // missing although required (told at `place`). What is right is in `set` even then.
  // `continues`: a training that goes on from a model, which brings what is required.
  static Status Bind(const models::ModelType& type, Span place,
                     const std::vector<parser::Attribute>& attributes, bool continues,
                     AttributeSet* set);
  // The same for a statement that is not about a model type ("predict").
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

  // "train.verbose: taken over from SQLFlow, no effect: ...", for each that is written and does
  // nothing.
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
