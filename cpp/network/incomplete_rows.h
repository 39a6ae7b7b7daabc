// Rows of codes of which some are missing, under a product of tables: what the rest of each row makes probable.
//
// Given what is known of a row, its missing cells fall apart into components that tell nothing about each other: two
// cells are in one if a factor has both. What is asked of a component depends on which cells it has and on the cells
// of the tables that are still open, so that rows which agree in these are answered once. What depends on the tables'
// numbers is found anew at every call, the rest when the rows are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tallybayes {

struct TableFactor {
  std::vector<uint32_t> members;
  std::vector<int64_t> strides;  // of the members in its table
  int64_t offset = 0;            // of its table, or of that of row 0, among the cells of all tables
  int64_t n_cells = 1;
  bool by_row = false;  // has a table for every row
  int64_t sums_to_one = -1;  // the variable over which it does
};

struct PartlyKnownInput {
  const int32_t* codes = nullptr;  // (n_rows, variables): −1 for missing, else below the size
  const double* weights = nullptr;
  size_t n_rows = 0;
  std::vector<uint32_t> sizes;
  std::vector<TableFactor> factors;
  std::vector<uint32_t> when;  // each variable is summed out
  std::vector<uint8_t> kept;   // variables that are not left out where nothing is known of them, nor below them
};

// A table over some missing variables of a component, where it hangs in the tree of those, and what is multiplied in.
struct SmallClique {
  size_t n_states = 1;
  size_t first = 0;          // of its states among those of the tree
  int64_t above = -1;        // −1 for the root
  size_t n_message = 1;      // combinations of the variables that it shares with the clique above
  size_t first_message = 0;
  std::vector<uint32_t> shape;
  std::vector<int64_t> to_message;     // strides: its own axes in the message
  std::vector<int64_t> above_message;  // those of the clique above
};

struct FactorUse {
  size_t clique;
  std::vector<int64_t> strides;  // of the clique's axes in the factor's table
  bool by_row;
};

struct NodeUse {
  uint32_t variable;
  size_t clique;
  std::vector<int64_t> strides;
};

// Components with the same missing cells and the same factors.
struct Pattern {
  std::vector<SmallClique> cliques;  // each before the one it hangs on
  std::vector<FactorUse> factors;
  std::vector<NodeUse> nodes;
  size_t n_states = 0, n_messages = 0;  // of all cliques
  double cells = 0;                     // the same, however many
  double cost = 0;                      // of an instance, about, in cells
  std::vector<int64_t> bases;           // (instances, factors): what is known of the place in each table
  std::vector<double> weights;          // of all rows that are alike
  size_t n_instances = 0;
  std::vector<uint32_t> slots;  // of a hash table of instances
};

struct Occurrence {
  uint32_t row, pattern, instance;
};

class PartlyKnown {
 public:
  explicit PartlyKnown(PartlyKnownInput input);

  double most_cells() const { return most_cells_; }  // of the cliques of any component
  size_t n_rows() const { return n_rows_; }
  size_t n_cells() const { return n_cells_; }  // of all tables
  size_t n_instances() const { return n_instances_; }
  const std::vector<uint32_t>& sizes() const { return sizes_; }

  // Adds what the rows expect to `counts`, of factors with a missing member; returns their weighted log likelihood.
  double expect(const double* tables, const double* logs, double* counts, size_t threads) const;
  // The log likelihood of every row by such factors, added to `log_likelihood`, and the distribution of every missing
  // variable that has room in `room` (a pointer each, (rows, levels)).
  void answer(const double* tables, const double* logs, double* log_likelihood, const std::vector<double*>& room,
              size_t threads) const;

 private:
  void read(const PartlyKnownInput& input);

  std::vector<uint32_t> sizes_;
  std::vector<Pattern> patterns_;
  std::vector<Occurrence> occurrences_;
  std::vector<size_t> firsts_;  // of the instances of every pattern among all
  size_t n_rows_ = 0, n_cells_ = 0, n_shared_ = 0, n_instances_ = 0;
  double most_cells_ = 0, cost_ = 0;
};

// The cliques of the variables of a component, those of `factors`, which are summed out in the order of `when`.
Pattern plan_component(const std::vector<uint32_t>& variables, const std::vector<uint32_t>& factors,
                       const PartlyKnownInput& input);

}  // namespace tallybayes
