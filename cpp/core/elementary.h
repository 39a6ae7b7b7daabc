// Elementary functions made of sums, products and quotients only. Unlike system libraries they return the same bits on
// every machine. Errors are one or two units in the last place, of log Γ near its zeros 1e-16.
#pragma once

namespace tallybayes {

double natural_log(double x);         // of numbers from 0 on
double log_one_plus(double x);        // of numbers from 0 on
double exponential(double x);
double log_gamma_plus_one(double x);  // of numbers from 0 on

}  // namespace tallybayes
