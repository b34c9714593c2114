#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "catalog/sql/sql_text.h"

// A statement of ours with its parameters' values inserted. Pure; thread-safe.
namespace sluice::server::pgwire {

struct BoundText {
  std::string text;
  // Maps a place in `text` to the place in the text with parameters.
  Span PlaceOf(Span span) const;
  Status Moved(const Status& status) const;

  struct Replaced {
    int64_t old_begin, old_end;  // "$1"
    int64_t new_begin, new_end;  // "('5'::pg_catalog.int4)"
  };
  std::vector<Replaced> replaced;  // in order
};

// $n, outside of strings, quoted names and comments.
struct ParameterPlace {
  size_t number;  // from 1
  size_t begin, end;
};
std::vector<ParameterPlace> FindParameters(std::string_view sql);

// The text with each parameter replaced. `attribute`: the parameter is the value of an attribute in
// a clause of ours; else it is an expression in the select.
using ParameterText =
    std::function<Result<std::string>(const ParameterPlace& place, bool attribute)>;
Result<BoundText> Substitute(std::string_view sql, const ParameterText& text_of);

// The largest $n outside of strings and comments; 0: there is none.
size_t CountParameters(std::string_view sql);

// Parameters whose value and type the database has reported, by their index.
struct ShownParameter {
  std::optional<std::string> text;  // nullopt: NULL
  std::string type_name;            // as format_type has it
};
using ShownParameters = std::map<size_t, ShownParameter>;

// The format of a parameter's value; `formats` as in Bind.
uint16_t FormatOf(const std::vector<uint16_t>& formats, size_t index);
// The parameters whose type, or whose binary form, is not known here.
std::vector<size_t> StrangeParameters(const std::vector<uint32_t>& types,
                                      const std::vector<uint16_t>& formats);

// As in Bind: `types` (OIDs) may be fewer than the values, of which there is one for each
// parameter; `formats` has none, one, or one for each; `shown` takes precedence over `values`. In
// the select a parameter becomes an expression in `dialect`, in our clauses an attribute's value.
// Without `values` (Describe) all are NULL. 22P02 and the like: a value does not fit its type.
Result<BoundText> BindText(std::string_view sql, const std::vector<uint32_t>& types,
                           const std::vector<uint16_t>& formats,
                           const std::vector<std::optional<std::string>>* values,
                           catalog::Dialect dialect = catalog::Dialect::kPostgres,
                           const ShownParameters& shown = {});

}  // namespace sluice::server::pgwire
