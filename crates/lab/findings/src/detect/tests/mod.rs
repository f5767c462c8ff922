mod clean;
mod examples;
mod planted;
mod run;
