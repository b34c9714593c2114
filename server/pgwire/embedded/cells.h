#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "catalog/embedded_session.h"
#include "server/pgwire/messages.h"

// Stored values as clients see them. Any value may stand in any column, whatever that was declared
// as. Pure; thread-safe.
namespace sluice::server::pgwire {

// A cell that outlives its row.
struct KeptCell {
  catalog::EmbeddedCell cell;
  std::string bytes;
  explicit KeptCell(const catalog::EmbeddedCell& from) : cell(from), bytes(from.bytes) {}
  catalog::EmbeddedCell Get() const {
    catalog::EmbeddedCell copy = cell;
    copy.bytes = bytes;
    return copy;
  }
};

// Appends the field of a DataRow. In text every value has a form, also one that is not of the
// column's type; in binary that is 22P03.
Status AppendField(const catalog::EmbeddedCell& cell, const WireColumn& column, std::string* out);

// The cell as text, as COPY writes it too.
std::string CellText(const catalog::EmbeddedCell& cell, uint32_t type);

// How a result is described. `formats`: as Bind gives them; an expression of an unknown type is
// text.
Result<std::vector<WireColumn>> DescribeColumns(const catalog::EmbeddedStatement& statement,
                                                const std::vector<uint16_t>& formats);

// The type of a column whose first cells are known: the declared one where they are all of it, else
// one that they all are.
ColumnType TypeOfCells(const catalog::DeclaredType& declared,
                       const std::vector<catalog::EmbeddedCell>& cells);

// Binds $`number`: numbers as numbers, bytes as bytes, all else as its text. 22P02, 22P03, 22021:
// the value is none of its type.
Status BindParameter(catalog::EmbeddedStatement& statement, size_t number, uint32_t type,
                     bool binary, std::optional<std::string_view> value);

}  // namespace sluice::server::pgwire
