#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>
#include <vector>

#include "catalog/postgres/postgres_analyzed_internal.h"

namespace sluice::catalog {
namespace {

// A random sample of 20,000 rows misses a value of this frequency once in 5 * 10^8 tables.
constexpr double kClearlyMissed = 1e-3;
// The sample's estimate of distinct values is believed unless it is off by more than this factor.
constexpr double kDistinctTolerance = 2;

constexpr Oid kBpchar = 1042;  // char(n)

struct Analyzed {
  double distinct = 0;  // negative: as a fraction of the rows
  std::vector<std::pair<std::string, double>> common_values;
};

double Number(std::string_view text) {
  double number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// The contents of pg_stats, by column number.
Result<std::map<int, Analyzed>> ReadAnalyzed(PostgresConnection& connection, int64_t table) {
  ASSIGN_OR_RETURN(
      const PostgresResult result,
      connection.Ask(
          "SELECT a.attnum, s.n_distinct, v.value, v.frequency FROM pg_catalog.pg_class AS c"
          " JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace"
          " JOIN pg_catalog.pg_attribute AS a ON a.attrelid OPERATOR(pg_catalog.=) c.oid"
          " JOIN pg_catalog.pg_stats AS s ON s.schemaname OPERATOR(pg_catalog.=) n.nspname"
          " AND s.tablename OPERATOR(pg_catalog.=) c.relname"
          " AND s.attname OPERATOR(pg_catalog.=) a.attname AND NOT s.inherited"
          " LEFT JOIN LATERAL ROWS FROM (pg_catalog.unnest("
          "s.most_common_vals::pg_catalog.text::pg_catalog.text[]),"
          " pg_catalog.unnest(s.most_common_freqs))"
          " AS v(value, frequency) ON v.frequency OPERATOR(pg_catalog.>=) $2"
          " WHERE c.oid OPERATOR(pg_catalog.=) $1",
          {table, kClearlyMissed}));
  std::map<int, Analyzed> columns;
  for (int i = 0; i < PQntuples(result.get()); ++i) {
    Analyzed& column = columns[static_cast<int>(PostgresInteger(result.get(), i, 0))];
    column.distinct = Number(PostgresText(result.get(), i, 1));
    if (PQgetisnull(result.get(), i, 2) == 0) {
      column.common_values.emplace_back(PostgresText(result.get(), i, 2),
                                        Number(PostgresText(result.get(), i, 3)));
    }
  }
  return columns;
}

void Complete(const Analyzed& analyzed, double rows, int64_t common_values,
              ColumnStatistics* column) {
  const double distinct = analyzed.distinct < 0 ? -analyzed.distinct * rows : analyzed.distinct;
  if (distinct > kDistinctTolerance * column->distinct) {
    column->distinct = distinct;
    column->distinct_at_most = std::max(column->distinct_at_most, distinct);
  }
  if (column->has_range) {
    return;  // numbers are described by their range; a missed value does not matter there
  }
  auto& values = column->common_values;
  const size_t known = values.size();
  for (const auto& missed : analyzed.common_values) {
    const bool seen = std::any_of(values.begin(), values.begin() + static_cast<ptrdiff_t>(known),
                                  [&](const auto& entry) { return entry.first == missed.first; });
    if (!seen) {
      values.push_back(missed);
    }
  }
  if (values.size() > known) {
    std::sort(values.begin(), values.end(), [](const auto& a, const auto& b) {
      return a.second != b.second ? a.second > b.second : a.first < b.first;
    });
    values.resize(std::min(values.size(), static_cast<size_t>(common_values)));
    column->distinct = std::max(column->distinct, static_cast<double>(values.size()));
  }
}

}  // namespace

Status AddAnalyzedStatistics(PostgresConnection& connection, std::string_view select, int64_t table,
                             int64_t common_values, SelectStatistics* statistics) {
  ASSIGN_OR_RETURN(auto analyzed, ReadAnalyzed(connection, table));
  if (analyzed.empty()) {
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const PostgresResult described, connection.DescribeColumns(select));
  for (size_t i = 0; i < statistics->columns.size(); ++i) {
    const int field = static_cast<int>(i);
    auto found = analyzed.find(PQftablecol(described.get(), field));
    if (found != analyzed.end() && std::cmp_equal(PQftable(described.get(), field), table)) {
      if (PQftype(described.get(), field) == kBpchar) {  // filled with blanks
        for (auto& [value, share] : found->second.common_values) {
          value.erase(value.find_last_not_of(' ') + 1);
        }
      }
      Complete(found->second, static_cast<double>(statistics->rows), common_values,
               &statistics->columns[i]);
    }
  }
  return OkStatus();
}

}  // namespace sluice::catalog
