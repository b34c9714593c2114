#include "planner/attributes.h"

#include <fmt/core.h>

#include <unordered_map>

#include "base/letter_case.h"
#include "planner/attribute_value_internal.h"
#include "planner/error_list.h"

namespace sluice::planner {
namespace {

using models::AttributeSpec;
using models::AttributeType;

std::string NearestHint(const std::vector<AttributeSpec>& specs, std::string_view name) {
  std::vector<std::string> names;
  for (const AttributeSpec& spec : specs) {
    names.push_back(spec.name);
    names.insert(names.end(), spec.aliases.begin(), spec.aliases.end());
  }
  const std::optional<std::string> nearest = NearestName(name, names);
  return nearest ? fmt::format("did you mean '{}'?", *nearest) : "";
}

}  // namespace

Status AttributeSet::Bind(const models::ModelType& type, Span place,
                          const std::vector<parser::Attribute>& attributes, bool continues,
                          AttributeSet* set) {
  Status status = set->BindAll(type.attributes, attributes, [&type](std::string_view name) {
    const std::string hint = models::UnknownAttributeHint(type, name);
    return hint.empty() ? fmt::format("DESCRIBE MODEL TYPE {} lists what there is", type.name)
                        : hint;
  });
  if (!continues) {
    status.Add(set->CheckRequired(type.name, place));
  }
  return status;
}

Status AttributeSet::Bind(const std::vector<AttributeSpec>& specs, std::string_view statement,
                          Span place, const std::vector<parser::Attribute>& attributes,
                          AttributeSet* set) {
  Status status = set->BindAll(
      specs, attributes, [&specs](std::string_view name) { return NearestHint(specs, name); });
  status.Add(set->CheckRequired(statement, place));
  return status;
}

Status AttributeSet::BindAll(const std::vector<AttributeSpec>& specs,
                             const std::vector<parser::Attribute>& attributes,
                             const std::function<std::string(std::string_view)>& hint) {
  std::unordered_map<std::string, const AttributeSpec*> by_name;
  for (const AttributeSpec& spec : specs) {
    by_name.emplace(LowerAscii(spec.name), &spec);
    Entry entry;
    entry.spec = &spec;
    entry.value = DefaultOf(spec);
    entries_.emplace(spec.name, std::move(entry));
  }
  for (const AttributeSpec& spec : specs) {  // a name wins over another's alias
    for (const std::string& alias : spec.aliases) {
      by_name.emplace(LowerAscii(alias), &spec);
    }
  }
  ErrorList errors;
  for (const parser::Attribute& attribute : attributes) {
    const auto found = by_name.find(LowerAscii(attribute.name.text));
    if (found != by_name.end()) {
      errors.Add(BindOne(attribute, *found->second));
      continue;
    }
    errors.Add(InvalidArgument(fmt::format("unsupported attribute {}", attribute.name.text))
                   .At(attribute.name.span)
                   .Hint(hint(attribute.name.text)));
    if (errors.full()) {
      break;
    }
  }
  return errors.Take();
}

Status AttributeSet::CheckRequired(std::string_view owner, Span place) const {
  Status errors;
  for (const auto& [name, entry] : entries_) {
    if (entry.spec->required && !entry.written) {
      const bool is_list = entry.spec->type == AttributeType::kIntegerList;
      errors.Add(InvalidArgument(fmt::format("{} needs the attribute {}", owner, name))
                     .At(place)
                     .Hint(fmt::format("WITH {}={}: {}", name, is_list ? "[64, 32]" : "...",
                                       entry.spec->doc)));
    }
  }
  return errors;
}

Status AttributeSet::BindOne(const parser::Attribute& attribute, const AttributeSpec& spec) {
  Entry& entry = entries_.find(spec.name)->second;
  if (entry.written) {
    return InvalidArgument(fmt::format("attribute {} is given twice", spec.name))
        .At(attribute.name.span);
  }
  entry.written = true;
  if (MeansNothing(attribute.value, spec) && !spec.required) {
    return OkStatus();  // null: as if it were absent
  }
  entry.given = true;
  entry.value_span = attribute.value.span;
  ASSIGN_OR_RETURN(entry.value, ReadValue(spec, attribute.value));
  return OkStatus();
}

std::vector<std::string> AttributeSet::WithoutEffect() const {
  std::vector<std::string> told;
  for (const auto& [name, entry] : entries_) {
    if (entry.given && entry.spec->without_effect) {
      told.push_back(fmt::format("{}: {}", name, entry.spec->doc));
    }
  }
  return told;
}

const TypedValue* AttributeSet::Find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() || !found->second.value ? nullptr : &*found->second.value;
}

bool AttributeSet::Given(std::string_view name) const {
  const auto found = entries_.find(name);
  return found != entries_.end() && found->second.given;
}

Span AttributeSet::SpanOf(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? Span() : found->second.value_span;
}

std::optional<bool> AttributeSet::Flag(std::string_view name) const {
  const TypedValue* value = Find(name);
  const bool* flag = value == nullptr ? nullptr : std::get_if<bool>(value);
  return flag == nullptr ? std::nullopt : std::optional<bool>(*flag);
}

std::optional<int64_t> AttributeSet::Integer(std::string_view name) const {
  const TypedValue* value = Find(name);
  const int64_t* integer = value == nullptr ? nullptr : std::get_if<int64_t>(value);
  return integer == nullptr ? std::nullopt : std::optional<int64_t>(*integer);
}

std::optional<double> AttributeSet::Number(std::string_view name) const {
  const TypedValue* value = Find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (const auto* integer = std::get_if<int64_t>(value)) {
    return static_cast<double>(*integer);
  }
  const double* number = std::get_if<double>(value);
  return number == nullptr ? std::nullopt : std::optional<double>(*number);
}

std::optional<std::string> AttributeSet::Text(std::string_view name) const {
  const TypedValue* value = Find(name);
  const std::string* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
  return text == nullptr || text->empty() ? std::nullopt : std::optional<std::string>(*text);
}

std::optional<std::vector<double>> AttributeSet::Numbers(std::string_view name) const {
  const TypedValue* value = Find(name);
  const auto* numbers = value == nullptr ? nullptr : std::get_if<std::vector<double>>(value);
  return numbers == nullptr ? std::nullopt : std::optional<std::vector<double>>(*numbers);
}

std::optional<std::vector<std::string>> AttributeSet::Texts(std::string_view name) const {
  const TypedValue* value = Find(name);
  const auto* texts = value == nullptr ? nullptr : std::get_if<std::vector<std::string>>(value);
  return texts == nullptr ? std::nullopt : std::optional<std::vector<std::string>>(*texts);
}

std::optional<std::vector<NamedNumber>> AttributeSet::NamedNumbers(std::string_view name) const {
  const TypedValue* value = Find(name);
  const auto* named = value == nullptr ? nullptr : std::get_if<std::vector<NamedNumber>>(value);
  return named == nullptr ? std::nullopt : std::optional<std::vector<NamedNumber>>(*named);
}

}  // namespace sluice::planner
