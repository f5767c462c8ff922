mod clean;
mod events;
mod examples;
mod noise;
mod planted;
