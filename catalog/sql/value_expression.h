#pragma once

#include <string>
#include <string_view>

namespace sluice::catalog {

// The text of some of PostgreSQL's types depends on settings, or says more than the value: money by
// lc_monetary, an interval by IntervalStyle, char(n) filled with blanks. `type`: as format_type
// names it.

// The expression by which a training or prediction reads `column`: the number of money, the seconds
// of an interval, char(n) without the blanks; "" if the column is read as it is.
std::string ValueExpression(std::string_view column, std::string_view type);
// Whether that is a number, which PostgreSQL shows as another text.
bool IsNumberShownAsText(std::string_view type);

}  // namespace sluice::catalog
