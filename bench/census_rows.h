#pragma once

#include <string>

namespace sluice {

// The expressions of a table like the census: 6 numbers and 8 texts with its cardinalities, and the
// label `income`, of a row whose number is `i`.
inline std::string CensusColumns() {
  return "17 + i * 7 % 74 AS age, 'workclass-' || (i * 3 % 9) AS workclass,"
         " 12285 + i * 7919 % 1400000 AS fnlwgt, 'education-' || (i * 5 % 16) AS education,"
         " 1 + i % 16 AS education_num, 'marital-' || (i % 7) AS marital_status,"
         " 'occupation-' || (i * 11 % 15) AS occupation, 'relation-' || (i % 6) AS relationship,"
         " 'race-' || (i % 5) AS race, CASE WHEN i % 3 = 0 THEN 'Female' ELSE 'Male' END AS sex,"
         " CASE WHEN i % 12 = 0 THEN i % 99999 ELSE 0 END AS capital_gain,"
         " CASE WHEN i % 20 = 0 THEN i % 4356 ELSE 0 END AS capital_loss,"
         " 1 + i % 99 AS hours_per_week, 'country-' || (i * 13 % 42) AS native_country,"
         " CASE WHEN i % 4 = 0 THEN '>50K' ELSE '<=50K' END AS income";
}

}  // namespace sluice
